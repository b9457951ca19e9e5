"""What is wrong with a red stage, in parts that can be looked for in another record of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from greenlane.matrix.model import Stage
from greenlane.record.fingerprint import normalised
from greenlane.record.model import Finding, FirstError, Record, StageResult

RED = ("error", "warning")  # severities of findings that turn the check stage red


@dataclass(frozen=True, slots=True)
class Fault:
    """The identity of a red. A first error is one part; of the checks each finding is one."""

    fingerprint: str  # "" where nothing identifies it
    parts: frozenset[str]

    def is_within(self, other: Fault) -> bool:
        """Whether the other red holds all that is wrong here."""
        return bool(self.parts) and self.parts <= other.parts


NOTHING = Fault("", frozenset())


def of(record: Record, stage: StageResult) -> Fault:
    error = stage.first_error
    if stage.stage is Stage.CHECK and error is None:
        return _of_findings(frozenset(identity(finding) for finding in red_findings(record)))
    if error is None or not error.fingerprint:
        return NOTHING
    return Fault(error.fingerprint, frozenset({error.fingerprint}))


def red_findings(record: Record) -> Iterator[Finding]:
    return (finding for finding in record.findings if finding.severity in RED)


def identity(finding: Finding) -> str:
    """Rule, file and message without line numbers: what stays while lines move."""
    return "\0".join((finding.rule, finding.file, normalised(finding.message)))


def first_error(record: Record, stage: StageResult) -> FirstError | None:
    """The stage's first error; of the checks the first finding."""
    if stage.first_error is not None or stage.stage is not Stage.CHECK:
        return stage.first_error
    finding = next(red_findings(record), None)
    if finding is None:
        return None
    return FirstError(
        message=finding.message,
        fingerprint=of(record, stage).fingerprint,
        file=finding.file,
        line=finding.line,
        rule=finding.rule,
    )


def _of_findings(parts: frozenset[str]) -> Fault:
    if not parts:
        return NOTHING
    return Fault(hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16], parts)

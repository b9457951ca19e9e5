"""What the checks found, and what they could not look at."""

from __future__ import annotations

from dataclasses import dataclass

from greenlane.checks.source.files import Unparsed
from greenlane.record.model import Finding


@dataclass(frozen=True, slots=True)
class Report:
    """What the checks found, and what they could not look at."""

    lanes: tuple[str, ...]
    findings: tuple[Finding, ...]
    unparsed: tuple[Unparsed, ...] = ()
    suppressed: int = 0
    baseline: int = 0  # findings that the baseline holds
    withdrawn: int = 0  # findings that the compiler denied
    asked: bool = False  # whether a compiler was asked

    def for_lane(self, lane: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if lane in finding.lanes)

    @property
    def is_red(self) -> bool:
        return any(finding.severity != "note" for finding in self.findings)

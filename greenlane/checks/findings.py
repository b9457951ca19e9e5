"""Collects what the rules say: one finding for one fault, with all of its lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from greenlane.checks.source.text import shown
from greenlane.matrix.checks import ChecksConfig
from greenlane.record.model import Edit, Finding, Related, Suggestion

Severity = Literal["error", "warning", "note"]


@dataclass
class Draft:
    rule: str
    file: str
    line: int
    column: int
    message: str
    lanes: set[str] = field(default_factory=set)
    related: list[Related] = field(default_factory=list)
    suggestion: Suggestion | None = None
    severity: Severity | None = None  # weaker than the rule's own

    def take(self, other: Draft) -> None:
        """The same fault, seen from elsewhere."""
        self.lanes |= other.lanes
        self.suggestion = self.suggestion or other.suggestion
        for entry in other.related:
            if entry not in self.related:
                self.related.append(entry)


Key = tuple[str, str, int, int, str]


class Findings:
    """Drafts by the file whose look led to them; what looks at the whole tree has an owner of its own."""

    def __init__(self, lanes: Sequence[str], config: ChecksConfig) -> None:
        self._order = {lane: index for index, lane in enumerate(lanes)}
        self._config = config
        self._drafts: dict[Key, Draft] = {}
        self.by_owner: dict[str, tuple[Draft, ...]] = {}

    def close(self, owner: str) -> None:
        """What was added since the last call is this owner's."""
        self.by_owner[owner] = tuple(self._drafts.values())
        self._drafts = {}

    def add(
        self,
        rule: str,
        place: tuple[str, int, int],
        lanes: Iterable[str],
        message: str,
        related: Iterable[tuple[str, int, str]] = (),
        suggestion: Suggestion | None = None,
        severity: Severity | None = None,
    ) -> None:
        """`place` is file, line, column; `related` holds file, line and what is there."""
        key = (rule, *place, message)
        draft = self._drafts.setdefault(key, Draft(rule, *place, message, severity=severity))
        draft.take(
            Draft(
                rule,
                *place,
                message,
                set(lanes),
                [Related(file=_readable(file), line=line, message=shown(text)) for file, line, text in related],
                suggestion,
            )
        )

    def result(self) -> tuple[Finding, ...]:
        merged: dict[Key, Draft] = {}
        for owner in sorted(self.by_owner):
            for draft in self.by_owner[owner]:
                key = (draft.rule, draft.file, draft.line, draft.column, draft.message)
                if key not in merged:
                    merged[key] = replace(draft, lanes=set(draft.lanes), related=list(draft.related))
                else:
                    merged[key].take(draft)
        drafts = sorted(
            merged.values(), key=lambda draft: (draft.file, draft.line, draft.column, draft.rule, draft.message)
        )
        return tuple(map(self._finding, drafts))

    def _finding(self, draft: Draft) -> Finding:
        severity: Severity = self._config.severity_of(draft.rule)
        if draft.severity is not None and draft.rule not in self._config.severity:
            severity = draft.severity
        return Finding(
            rule=draft.rule,
            severity=severity,
            file=_readable(draft.file),
            line=draft.line,
            column=draft.column,
            lanes=tuple(sorted(draft.lanes, key=lambda lane: self._order.get(lane, -1))),
            message=shown(draft.message),
            related=tuple(draft.related),
            suggestion=draft.suggestion,
        )


def _readable(path: str) -> str:
    """A file name that is no UTF-8, as far as it can be shown."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def insert(file: str, before: int, text: str) -> Edit:
    """Put lines in front of a line."""
    return Edit(file=file, first=before, last=before - 1, text=text)


def replaced(file: str, line: int, text: str) -> Edit:
    return Edit(file=file, first=line, last=line, text=text)

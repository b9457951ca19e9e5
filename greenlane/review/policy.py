"""The rules that a change is judged by: those of the merge base, never its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenlane.errors import MatrixError
from greenlane.matrix.loading import compile_matrix
from greenlane.matrix.model import Lane, Matrix
from greenlane.record.git import git
from greenlane.review.model import PolicyChange

MAX_MATRIX_BYTES = 10 * 1024 * 1024
SHOWN = 200  # characters of a value


@dataclass(frozen=True, slots=True)
class Policy:
    """The merge base's matrix, and the head's for what is new in it."""

    base: Matrix | None  # None: the base has no matrix yet
    head: Matrix
    changes: tuple[PolicyChange, ...]

    @property
    def ruling(self) -> Matrix:
        return self.base or self.head

    def lane(self, lane_id: str) -> Lane | None:
        """The lane as the merge base has it; a lane that the change adds, as the change has it."""
        return self.ruling.lane(lane_id) or self.head.lane(lane_id)

    def lane_ids(self) -> list[str]:
        """Every lane of head, and those that head dropped although they are required."""
        ids = [lane.id for lane in self.head.lanes]
        return ids + [name for name in self.ruling.required if name not in set(ids)]


def read(repository: Path, merge_base: str | None, head: str, matrix_path: str) -> Policy:
    """Both matrices, and every edit of the rules between them. Raises MatrixError for a head that does not load."""
    head_matrix = _matrix_at(repository, head, matrix_path)
    if head_matrix is None:
        raise MatrixError(f"{matrix_path}: not in {head[:12]}; `greenlane init` writes a first one")
    base_matrix = _matrix_at(repository, merge_base, matrix_path) if merge_base else None
    if base_matrix is None:
        added = PolicyChange(what=matrix_path, before="none at the merge base", after="added by this change")
        return Policy(None, head_matrix, (added,))
    return Policy(base_matrix, head_matrix, tuple(_changes(base_matrix, head_matrix)))


def _matrix_at(repository: Path, commit: str, path: str) -> Matrix | None:
    shown = git(repository, "cat-file", "-p", f"{commit}:{path}", check=False)
    if shown.returncode != 0:
        return None
    if len(shown.stdout) > MAX_MATRIX_BYTES:
        raise MatrixError(f"{path} at {commit[:12]}: larger than {MAX_MATRIX_BYTES} bytes")
    return compile_matrix(shown.stdout, path).matrix


def _changes(base: Matrix, head: Matrix) -> Iterator[PolicyChange]:
    yield from _set_changes("required lanes", base.required, head.required, removal_loosens=True)
    yield from _value_changes("checks", base.checks, head.checks)
    known = [{f"{entry.lane} {entry.stage} {entry.fingerprint}" for entry in m.known_red} for m in (base, head)]
    yield from _set_changes("known reds", known[0], known[1], removal_loosens=False)
    for lane in base.lanes:
        other = head.lane(lane.id)
        if other is None:
            yield PolicyChange(what=f"lane {lane.id}", before="exists", after="removed", loosens=True)
            continue
        yield from _set_changes(f"{lane.id}: require", lane.require, other.require, removal_loosens=True)
        yield from _value_changes(f"{lane.id}: gates", lane.gates, other.gates)
        if lane.row != other.row:
            yield PolicyChange(what=f"{lane.id}: row", before=str(lane.row), after=str(other.row))


def _set_changes(what: str, before: Any, after: Any, *, removal_loosens: bool) -> Iterator[PolicyChange]:
    old, new = set(before), set(after)
    for name in sorted(old - new):
        yield PolicyChange(what=what, before=name, after="removed", loosens=removal_loosens)
    for name in sorted(new - old):
        yield PolicyChange(what=what, before="none", after=f"{name} added", loosens=not removal_loosens)


def _value_changes(what: str, before: Any, after: Any) -> Iterator[PolicyChange]:
    """One change per leaf that differs. Whether a value loosens a gate is for a person to say, so each may."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _value_changes(f"{what}.{key}", before.get(key), after.get(key))
    elif before != after:
        yield PolicyChange(what=what, before=_shown(before), after=_shown(after), loosens=True)


def _shown(value: Any) -> str:
    text = "none" if value is None else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"

"""The rules that a change is judged by: those of the merge base, never its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from greenlane.errors import MatrixError
from greenlane.matrix.loading import compile_matrix
from greenlane.matrix.model import KnownRed, Lane, Matrix
from greenlane.record.git import git
from greenlane.review.model import PolicyChange

MAX_MATRIX_BYTES = 10 * 1024 * 1024
SHOWN = 200  # characters of a value


@dataclass(frozen=True)
class Policy:
    """The merge base's matrix, and the head's for what is new in it."""

    base: Matrix | None  # None: the base has no matrix yet
    head: Matrix
    changes: tuple[PolicyChange, ...]
    broken: str | None = None  # why the head's own matrix can't be read; `head` is the base's then

    @property
    def ruling(self) -> Matrix:
        return self.base or self.head

    @cached_property
    def base_lanes(self) -> dict[str, Lane]:
        return {lane.id: lane for lane in self.base.lanes} if self.base else {}

    @cached_property
    def head_lanes(self) -> dict[str, Lane]:
        """What records of the head may be of; none where its matrix can't be read."""
        return {} if self.broken else {lane.id: lane for lane in self.head.lanes}

    def lanes(self) -> dict[str, Lane]:
        """Every lane of head as the merge base has it, or as the change adds it; and the required that head drops."""
        found = {lane.id: self.base_lanes.get(lane.id, lane) for lane in self.head.lanes}
        dropped = [name for name in self.ruling.required if name not in found]
        return found | {name: self.base_lanes[name] for name in dropped}

    @cached_property
    def edits_checks(self) -> bool:
        return self.base is not None and dict(self.base.checks) != dict(self.head.checks)

    @cached_property
    def required(self) -> frozenset[str]:
        return frozenset(self.ruling.required)


def read(repository: Path, before: str | None, head: str, matrix_path: str) -> Policy:
    """Both matrices, and every edit of the rules between them. `before` is the merge base, or the base's tip where
    there is none: a change without a common history is not thereby its own judge."""
    blobs = [_blob(repository, commit, matrix_path) for commit in (before, head)]
    base_matrix = _compiled(repository, blobs[0], f"{matrix_path} at {str(before)[:12]}", matrix_path)
    if blobs[1] == blobs[0] and base_matrix is not None:
        return Policy(base_matrix, base_matrix, ())
    try:
        head_matrix = _compiled(repository, blobs[1], f"{matrix_path} at {head[:12]}", matrix_path)
        broken = f"{matrix_path}: not in {head[:12]}" if head_matrix is None else None
    except MatrixError as error:
        head_matrix, broken = None, str(error)
    if head_matrix is None:
        if base_matrix is None:
            raise MatrixError(f"{broken}; `greenlane init` writes a first one")
        return Policy(base_matrix, base_matrix, (), broken)
    if base_matrix is None:
        added = PolicyChange(
            what=matrix_path, before="none at the merge base", after="added by this change", loosens=True
        )
        return Policy(None, head_matrix, (added,))
    return Policy(base_matrix, head_matrix, tuple(_changes(base_matrix, head_matrix)))


def _blob(repository: Path, commit: str | None, path: str) -> str | None:
    """The id of the matrix in a commit's tree, or None where it is none."""
    if commit is None:
        return None
    found = git(repository, "rev-parse", "--verify", "--quiet", f"{commit}:{path}", check=False)
    return found.stdout.decode().strip() or None


def _compiled(repository: Path, blob: str | None, shown: str, path: str) -> Matrix | None:
    if blob is None:
        return None
    if int(git(repository, "cat-file", "-s", blob).stdout) > MAX_MATRIX_BYTES:
        raise MatrixError(f"{shown}: larger than {MAX_MATRIX_BYTES} bytes")
    return compile_matrix(git(repository, "cat-file", "blob", blob).stdout, path).matrix


# Fields of a lane that decide what its evidence means, or what the checks and gates get to see of the change.
JUDGED_BY = (
    "stages", "sources", "include_dirs", "macros", "vendors", "device", "arch", "archs", "emulate", "compiler",
    "compiler_version", "defines", "image", "executor", "env", "setup_inputs", "hosted_only",
)  # fmt: skip


def _changes(base: Matrix, head: Matrix) -> Iterator[PolicyChange]:
    yield from _set_changes("required lanes", base.required, head.required, removal_loosens=True)
    yield from _value_changes("checks", base.checks, head.checks)
    yield from _set_changes("constraints", base.constraints, head.constraints, removal_loosens=False)
    known = [{_known(entry) for entry in matrix.known_red} for matrix in (base, head)]
    yield from _set_changes("known reds", known[0], known[1], removal_loosens=False)
    heads = {lane.id: lane for lane in head.lanes}
    edits: dict[tuple[str, str, str, bool], list[str]] = {}
    for lane in base.lanes:
        for change in _lane_changes(lane, heads.get(lane.id)):
            edits.setdefault((change.what, change.before, change.after, change.loosens), []).append(lane.id)
    for (what, before, after, loosens), lanes in edits.items():
        yield PolicyChange(what=f"{_named(lanes)}: {what}", before=before, after=after, loosens=loosens)


def _known(entry: KnownRed) -> str:
    return f"{entry.lane} {entry.stage} {entry.fingerprint} until {entry.expires}"


def _named(lanes: list[str]) -> str:
    """One edit of many lanes is told once."""
    return ", ".join(lanes[:4]) + (f" and {len(lanes) - 4} more" if len(lanes) > 4 else "")


def _lane_changes(lane: Lane, other: Lane | None) -> Iterator[PolicyChange]:
    if other is None:
        yield PolicyChange(what="lane", before="exists", after="removed", loosens=True)
        return
    if other.digest == lane.digest and other.row == lane.row and set(other.require) == set(lane.require):
        return
    yield from _set_changes("require", lane.require, other.require, removal_loosens=True)
    yield from _value_changes("gates", lane.gates, other.gates)
    if lane.row != other.row:
        yield PolicyChange(what="row", before=str(lane.row), after=str(other.row))
    for name in JUDGED_BY:
        yield from _value_changes(name, _plain(getattr(lane, name)), _plain(getattr(other, name)))


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


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

"""`--changed-since REV`: which lanes a change may affect, and why. Whatever is uncertain is selected."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenlane.errors import MatrixError
from greenlane.matrix import content, git
from greenlane.matrix.globs import first_match
from greenlane.matrix.includes import Closure, IncludeGraph, is_source
from greenlane.matrix.loading import compile_matrix
from greenlane.matrix.model import Lane, Matrix


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether a change selects a lane, and why."""

    lane: str
    selected: bool
    why: str


def choose(matrix_file: Path, rev: str) -> list[Choice]:
    """One choice per lane, in the matrix's order."""
    text = content.read(matrix_file)
    matrix = compile_matrix(text, str(matrix_file)).matrix
    tree = git.Tree.at(matrix_file.resolve().parent)
    base = tree.base(rev)
    changes = tree.changes(base)
    before = _digests_before(tree, base, matrix_file.name) if matrix_file.name in changes else None
    graph = IncludeGraph(tree.folder, tree.files)
    closures: dict[Any, Closure] = {}  # lanes that compile the same share one
    mentions: dict[str, frozenset[str]] = {}
    rules = [_Rules.of(lane, tree, graph, closures, mentions) for lane in matrix.lanes]
    shared = _Shared(matrix, matrix_file.name, changes, before, rules)
    return [Choice(lane.id, *shared.judge(lane, own)) for lane, own in zip(matrix.lanes, rules, strict=True)]


@dataclass(frozen=True, slots=True)
class _Rules:
    """What affects one lane."""

    compiled: frozenset[str]
    missing: frozenset[str]  # includes that no file has; base names
    computed: str | None
    mentioned: frozenset[str]  # files that its settings name: Dockerfile, prompts, golden ids

    @classmethod
    def of(
        cls,
        lane: Lane,
        tree: git.Tree,
        graph: IncludeGraph,
        closures: dict[Any, Closure],
        mentions: dict[str, frozenset[str]],
    ) -> _Rules:
        key = (lane.sources, lane.include_dirs)
        if key not in closures:
            sources = [path for path in tree.files if first_match(lane.sources, path)]
            closures[key] = graph.closure(sources, lane.include_dirs)
        reached, missing, computed = closures[key]
        texts = json.dumps([dict(lane.gates), dict(lane.stages)], default=str)
        if texts not in mentions:
            mentions[texts] = frozenset(path for path in tree.files if len(path) > 3 and path in texts)
        named = mentions[texts].union(lane.setup_inputs, [lane.image.dockerfile] if lane.image else ())
        names = frozenset(posixpath.basename(name) for name in missing)
        return cls(reached, names, computed, named)

    def claim(self, lane: Lane, path: str) -> str | None:
        """Why the file affects the lane, as far as the lane's own rules say."""
        if glob := first_match(lane.paths, path):
            mark = lane.marks.get("paths")
            return f"{path} matches its path {glob!r}{f' ({mark})' if mark else ''}"
        if path in self.mentioned:
            return f"{path} is named by its settings"
        if glob := first_match(lane.sources, path):
            return f"{path} is compiled by it ({glob!r})"
        if path in self.compiled:
            return f"{path} is included by what it compiles"
        return None


class _Shared:
    """Judges lanes against one change."""

    def __init__(
        self, matrix: Matrix, name: str, changes: Sequence[str], before: dict[str, str] | None, rules: Sequence[_Rules]
    ) -> None:
        self.matrix = matrix
        self.name = name
        self.before = before
        self.changes = [path for path in changes if not first_match(matrix.irrelevant, path)]
        pairs = list(zip(matrix.lanes, rules, strict=True))
        self.owned = {path for path in self.changes if any(own.claim(lane, path) for lane, own in pairs)}

    def judge(self, lane: Lane, own: _Rules) -> tuple[bool, str]:
        reasons = list(self._reasons(lane, own))
        if reasons:
            return True, reasons[0] + (f", and {len(reasons) - 1} more" if len(reasons) > 1 else "")
        if not self.changes:
            return False, "no file that matters was changed"
        return False, f"none of the {len(self.changes)} changed files affects it"

    def _reasons(self, lane: Lane, own: _Rules) -> Iterator[str]:
        for path in self.changes:
            if path == self.name:
                reason = self._by_matrix(lane)
            else:
                reason = own.claim(lane, path) or self._uncertain(lane, own, path)
            if reason:
                yield reason

    def _by_matrix(self, lane: Lane) -> str | None:
        if self.before is None:
            return f"{self.name} was changed, and its old form can't be read"
        if lane.id not in self.before:
            return f"{self.name} did not have this lane before"
        return f"its settings in {self.name} were changed" if self.before[lane.id] != lane.digest else None

    def _uncertain(self, lane: Lane, own: _Rules, path: str) -> str | None:
        if path.startswith("../"):
            return f"{path} lies outside the matrix's folder, where no rule reaches"
        if is_source(path):
            if not lane.sources:
                return f"{path} may be compiled by it: it names no sources"
            if posixpath.basename(path) in own.missing:
                return f"{path} may be what it includes and no file provides"
            if own.computed:
                return f"{path} may be included by {own.computed}, which computes a name"
        if path not in self.owned:
            return f"{path} is covered by no rule of any lane"
        return None if lane.sources or lane.paths else f"{path} may affect it: it has no path rules"


def _digests_before(tree: git.Tree, base: str, name: str) -> dict[str, str] | None:
    """Lane digests of the matrix at the base; None when it can't be read."""
    try:
        matrix = compile_matrix(tree.file_at(base, name), name).matrix
    except MatrixError:
        return None
    return {lane.id: lane.digest for lane in matrix.lanes}

"""The part of a tree that a lane reads: what it claims, and what nobody claims."""

from __future__ import annotations

import json
from functools import lru_cache

from greenlane.lanes.tree import SourceTree, digest_of
from greenlane.matrix.globs import first_match
from greenlane.matrix.includes import IncludeGraph, is_source
from greenlane.matrix.model import Lane, Matrix


def digest(tree: SourceTree, matrix: Matrix, lane: Lane) -> str:
    """Hex SHA-256 over the files whose change may change the lane's result.

    A file is left out when the matrix calls it irrelevant, or when other lanes claim it and this one doesn't. A file
    that no lane claims belongs to all: forgetting one in `paths` costs time and never makes a false reuse. The matrix
    itself is left out, because the lane's own digest speaks for it.
    """
    graph = _graph(tree)
    mine = _claims(graph, tree, lane)
    others = frozenset().union(*(_claims(graph, tree, other) for other in _distinct(matrix)))
    return digest_of(
        [
            (name, content)
            for name, content in tree.files
            if (name in mine or name not in others)
            and name != matrix.file.rpartition("/")[2]
            and not first_match(matrix.irrelevant, name)
        ]
    )


def _claims(graph: IncludeGraph, tree: SourceTree, lane: Lane) -> frozenset[str]:
    """Files that match the lane's globs, that its sources include, and that its settings name."""
    names = [name for name, _ in tree.files]
    settings = json.dumps([dict(lane.gates), dict(lane.stages)], default=str)
    image = lane.image.dockerfile if lane.image else None
    sources = _matching(tuple(names), lane.sources) if lane.sources else frozenset(filter(is_source, names))
    included, missing, computed = graph.closure(sorted(sources), lane.include_dirs)
    claimed = {name for name in names if name == image or (len(name) > 3 and name in settings)}
    claimed |= sources | included | _matching(tuple(names), (*lane.paths, *lane.setup_inputs))
    if computed or missing & {name.rpartition("/")[2] for name in names}:
        claimed |= set(filter(is_source, names))  # what it includes can't be known
    return frozenset(claimed)


@lru_cache(maxsize=256)
def _matching(names: tuple[str, ...], globs: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for name in names if first_match(globs, name))


@lru_cache(maxsize=8)
def _graph(tree: SourceTree) -> IncludeGraph:
    return IncludeGraph(tree.path, tuple(name for name, _ in tree.files))


def _distinct(matrix: Matrix) -> list[Lane]:
    """One lane of each set that claims the same files: a matrix of 1,000 lanes has few."""
    seen = {
        (lane.paths, lane.sources, lane.include_dirs, lane.setup_inputs, lane.image and lane.image.dockerfile): lane
        for lane in matrix.lanes
    }
    return list(seen.values())

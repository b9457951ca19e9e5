"""`greenlane explain LANE`: where each value came from, or why the lane doesn't exist or isn't selected."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from greenlane.errors import MatrixError
from greenlane.matrix import content
from greenlane.matrix.expand import Expanded
from greenlane.matrix.loading import Loaded, compile_matrix
from greenlane.matrix.problems import nearest
from greenlane.matrix.rows import rows_of
from greenlane.matrix.select import Selection


def command(arguments: argparse.Namespace) -> int:
    loaded = compile_matrix(content.read(arguments.matrix), str(arguments.matrix))
    expanded = next((one for one in loaded.expansion.expanded if one.lane.id == arguments.lane), None)
    if expanded is None:
        print(why_missing(loaded, arguments.lane))
        return 0
    print("\n".join(lines(expanded)))
    if arguments.select is not None:
        print(why_selected(loaded, arguments.lane, arguments.select))
    if arguments.changed_since is not None:
        from greenlane.matrix import changed

        choices = changed.choose(arguments.matrix, arguments.changed_since)
        choice = next(choice for choice in choices if choice.lane == arguments.lane)
        print(f"{'selected' if choice.selected else 'not selected'} by --changed-since: {choice.why}")
    return 0


def lines(expanded: Expanded) -> Iterator[str]:
    """The lane, then each value with its place and its layer."""
    cell, lane = expanded.cell, expanded.lane
    marks = lane.marks
    yield f"{lane.id}: {cell.label} ({marks['id']})"
    axes = [f"{name} {value}" for name, value in _axes(expanded) if value]
    yield f"  {', '.join(axes)}"
    if lane.archs:
        yield f"  targets {', '.join(lane.archs)}; wavefront {lane.wavefront or 'none'}, family {lane.family or 'none'}"
    for path in sorted(expanded.draft.origins):
        value = _at(expanded.draft.values, path)
        node, label = expanded.draft.origins[path]
        if (isinstance(value, dict) and value) or (value is None and node.value is not None):
            continue  # its keys say it, or it went with what a later layer took away
        yield f"  {path} = {_text(value)}  ({label}, {marks[path]})"
    yield f"  digest = {lane.digest}"


def why_missing(loaded: Loaded, lane: str) -> str:
    """Why there is no such lane; an id that nothing in the file comes near is a mistake in the arguments."""
    for excluded in loaded.expansion.excluded:
        if excluded.id == lane:
            return f"{lane} does not exist: excluded at {excluded.mark}: {excluded.why}"
    ids = [one.lane.id for one in loaded.expansion.expanded]
    backend = next((name for name in loaded.file.backends if lane == name or lane.startswith(name + "-")), None)
    if backend is None:
        raise MatrixError(f"no lane {lane!r}, and no backend begins it{nearest(lane, ids)}")
    have = [one for one in ids if one == backend or one.startswith(backend + "-")]
    rest = lane.removeprefix(backend).lstrip("-")
    named = f"names {rest!r}" if rest else "has a lane without arch and variant"
    return f"{lane} does not exist: no product or include of {backend!r} {named}; it has {', '.join(have)}" + nearest(
        lane, ids
    )


def why_selected(loaded: Loaded, lane: str, expression: str) -> str:
    """Whether the expression selects the lane, word by word."""
    selection = Selection(expression)
    rows = rows_of(loaded.matrix)
    row = next(row for row in rows if row["id"] == lane)
    return f"{'selected' if selection.test(row) else 'not selected'} by --select: {selection.why(row)}"


def _axes(expanded: Expanded) -> Iterator[tuple[str, str | None]]:
    cell = expanded.cell
    yield from (("backend", cell.backend), ("toolkit", cell.toolkit), ("arch", cell.arch), ("variant", cell.variant))


def _at(values: dict[str, Any], path: str) -> Any:
    """The value at a dotted path; keys may hold dots themselves, so the longest key that fits is taken."""
    value: Any = values
    parts = path.split(".")
    while parts:
        if not isinstance(value, dict):
            return None
        for length in range(len(parts), 0, -1):
            key = ".".join(parts[:length])
            if key in value:
                value, parts = value[key], parts[length:]
                break
        else:
            return None
    return value


def _text(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return "(taken away)" if value is None else str(value)

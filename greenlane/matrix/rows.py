"""What a listing needs of each lane, as plain data: light to load, so that `nox -l` and `greenlane list` stay fast."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenlane.matrix.content import read, recall, remember

if TYPE_CHECKING:
    from collections.abc import Iterator

    from greenlane.matrix.model import Lane, Matrix

Row = dict[str, Any]
NIGHTLY = "nightly"  # tag of lanes that a change does not wait for
_COPIED = ("id", "backend", "toolkit", "arch", "variant", "row", "digest", "compiler", "family", "device", "executor")
_LISTS = ("tags", "require", "vendors", "runs_on")


def load(path: Path) -> list[Row]:
    """One row per lane, in the matrix's order. Raises `MatrixError` with every mistake in the file."""
    content = read(path)
    rows = recall(content)
    if isinstance(rows, list):
        return rows
    with uncollected():
        from greenlane.matrix.loading import compile_matrix

        rows = rows_of(compile_matrix(content, str(path)).matrix)
        remember(content, rows)
    return rows


@contextmanager
def uncollected() -> Iterator[None]:
    """Thousands of lanes are many small objects that stay; looking for garbage among them is a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def rows_of(matrix: Matrix) -> list[Row]:
    required = frozenset(matrix.required)
    return [_row(lane, required) for lane in matrix.lanes]


def _row(lane: Lane, required: frozenset[str]) -> Row:
    row: Row = {name: getattr(lane, name) for name in _COPIED}
    row.update({name: list(getattr(lane, name)) for name in _LISTS})
    row["timeout_s"] = lane.limits.timeout_s
    row["hosted_only"] = lane.hosted_only
    row["required"] = lane.id in required
    image = lane.image
    row["image"] = {"dockerfile": image.dockerfile, "target": image.target, "args": dict(image.args)} if image else None
    row["summary"] = f"{lane.row or lane.backend}: requires {', '.join(lane.require) or 'nothing'}"
    return row

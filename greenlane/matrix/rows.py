"""What a listing needs of each lane, as plain data: light to load, so that `nox -l` stays fast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Row = dict[str, Any]


def load(path: Path) -> list[Row]:
    """One row per lane, in the matrix's order."""
    from greenlane.matrix import load as load_matrix

    return [row(lane) for lane in load_matrix(path).lanes]


def row(lane: Any) -> Row:
    """The row of a lane."""
    return {
        "id": lane.id,
        "backend": lane.backend,
        "toolkit": lane.toolkit,
        "arch": lane.arch,
        "variant": lane.variant,
        "tags": list(lane.tags),
        "row": lane.row,
        "require": list(lane.require),
        "digest": lane.digest,
        "summary": _summary(lane),
    }


def _summary(lane: Any) -> str:
    wanted = ", ".join(lane.require) or "nothing"
    return f"{lane.row or lane.backend}: requires {wanted}"

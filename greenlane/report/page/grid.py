"""The matrix as a reader sees it: a block per backend, a row per architecture and toolkit, a column per variant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from greenlane.report.page.lane import LaneView

MAX_COLUMNS = 8  # with more variants the cells follow each other and wrap


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    cells: tuple[LaneView | None, ...]  # None: the matrix has no such lane


@dataclass(frozen=True, slots=True)
class Block:
    backend: str
    rows: tuple[Row, ...]
    lanes: int


def grid(lanes: Sequence[LaneView]) -> list[Block]:
    backends = dict.fromkeys(lane.backend for lane in lanes)
    return [_block(name, [lane for lane in lanes if lane.backend == name]) for name in backends]


def _block(backend: str, lanes: list[LaneView]) -> Block:
    lanes = sorted(lanes, key=lambda lane: (natural(lane.arch), natural(lane.toolkit), natural(lane.variant)))
    variants = sorted({lane.variant for lane in lanes}, key=natural)
    rows = dict.fromkeys((lane.arch, lane.toolkit) for lane in lanes)
    kinds = len({toolkit for _, toolkit in rows})
    return Block(
        backend,
        tuple(
            Row(
                _label(arch, toolkit if kinds > 1 else None, alone=len(rows) == 1),
                _cells(_at(lanes, arch, toolkit), variants),
            )
            for arch, toolkit in rows
        ),
        len(lanes),
    )


def _at(lanes: list[LaneView], arch: str | None, toolkit: str | None) -> list[LaneView]:
    return [lane for lane in lanes if (lane.arch, lane.toolkit) == (arch, toolkit)]


def _label(arch: str | None, toolkit: str | None, *, alone: bool) -> str:
    return " · ".join(part for part in (arch, toolkit) if part) or ("" if alone else "default")


def natural(name: str | None) -> list[tuple[int, str]]:
    """Sorts numbers as numbers, and what has no name first.

    >>> sorted(["sm_100", "sm_80", None], key=natural)
    [None, 'sm_80', 'sm_100']
    """
    parts = re.split(r"(\d+)", name or "")
    return [(int(part), "") if part.isdecimal() and len(part) < 19 else (-1, part) for part in parts if part]


def _cells(lanes: list[LaneView], variants: list[str | None]) -> tuple[LaneView | None, ...]:
    """One cell per variant where the columns are few, so that the rows line up; else the lanes as they come."""
    if len(variants) > MAX_COLUMNS or len({lane.variant for lane in lanes}) < len(lanes):
        return tuple(lanes)
    found = {lane.variant: lane for lane in lanes}
    cells = [found.get(variant) for variant in variants]
    while cells and cells[-1] is None:
        cells.pop()
    return tuple(cells)

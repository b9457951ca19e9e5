"""`greenlane list`: the lanes as a table, as JSON, or as groups of rows for a GitHub matrix."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from greenlane.matrix import rows as lane_rows
from greenlane.matrix.rows import Row

GROUP = 255  # rows; GitHub takes 256 jobs of one matrix
GATE = "greenlane gate"  # the one job name that branch protection asks for
HOSTED = ["ubuntu-24.04"]  # runner of a lane that names none
SLACK_MINUTES = 10  # for image and checkout, so that greenlane's own limit ends a lane before the runner's does
JSON_KEYS = ("id", "backend", "toolkit", "arch", "variant", "tags", "row", "require", "digest")


def command(arguments: argparse.Namespace) -> int:
    rows = lane_rows.load(arguments.matrix)
    if arguments.select is not None:
        from greenlane.matrix.select import Selection

        rows = Selection(arguments.select).select(rows)
    choices: dict[str, Any] = {}
    if arguments.changed_since is not None:
        from greenlane.matrix import changed

        choices = {choice.lane: choice for choice in changed.choose(arguments.matrix, arguments.changed_since)}
        rows_left = [row for row in rows if choices[row["id"]].selected]
    else:
        rows_left = rows
    for line in _why(rows, choices):
        print(line, file=sys.stderr)
    if arguments.json:
        print(json.dumps({"lanes": [{key: row[key] for key in JSON_KEYS} for row in rows_left]}, indent=1))
    elif arguments.github:
        print(json.dumps(github(rows_left)))
    else:
        print(table(rows_left), end="")
    return 0


def github(rows: Sequence[Row]) -> dict[str, Any]:
    """Each group is a matrix for `fromJSON`: `{"include": [row, ...]}`, fewer than 256 rows; each lane stands once."""
    jobs = [_job(row) for row in rows]
    groups = [{"include": jobs[start : start + GROUP]} for start in range(0, len(jobs), GROUP)]
    return {"gate": GATE, "groups": groups}


def _job(row: Row) -> dict[str, Any]:
    return {
        "lane": row["id"],
        "runs-on": row["runs_on"] or HOSTED,
        "image": row["image"],
        "timeout-minutes": math.ceil(row["timeout_s"] / 60) + SLACK_MINUTES,
        "row": row["row"],
        "require": row["require"],
        "required": row["required"],
    }


def table(rows: Sequence[Row]) -> str:
    """The lanes in columns; an empty column shows a dash."""
    head = ("LANE", "BACKEND", "TOOLKIT", "ARCH", "VARIANT", "ROW", "REQUIRE", "TAGS")
    keys = ("id", "backend", "toolkit", "arch", "variant", "row", "require", "tags")
    lines = [head, *([_cell(row[key]) for key in keys] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(line.rstrip() + "\n" for line in padded)


def _cell(value: Any) -> str:
    return (",".join(value) if isinstance(value, list) else value) or "-"


def _why(rows: Sequence[Row], choices: dict[str, Any]) -> Iterator[str]:
    """Why a change selects each lane or not; beside the output, which a program may read."""
    for row in rows if choices else ():
        choice = choices[row["id"]]
        yield f"{row['id']}: {'selected' if choice.selected else 'not selected'}: {choice.why}"

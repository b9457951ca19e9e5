"""The text of a pull request: required fields, a row of the matrix that owns its lanes, trailers that git will keep."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from greenlane.checks.findings import Findings
from greenlane.checks.source.project import Project
from greenlane.matrix.checks import RecordFields
from greenlane.matrix.model import Matrix

RULES = ("record",)

_FIELD = re.compile(r"^\s*(?:[-*]\s*)?(?:\*\*|__)?([A-Za-z][\w /-]*?)(?:\*\*|__)?\s*:(?:\*\*|__)?[ \t]*(.*)$")
_EMPTY = re.compile(r"\s*(?:<!--.*?-->|_+|\.\.\.|n/?a|todo|tbd)?\s*", re.I | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_DIVIDER = re.compile(r"---(\s.*)?$")
_MOST_BYTES = 1_000_000


def is_touched(project: Project, changed: Iterable[str]) -> bool:
    return False  # no source is read


def check_tree(project: Project, findings: Findings) -> None:
    config = project.config.record
    name = os.environ.get("GREENLANE_PR_BODY") or (config.body if config else None)
    if config is None or name is None:
        return
    path = project.root / name
    lanes = [lane.id for lane in project.lanes]
    try:
        text = path.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace")
    except OSError as error:
        findings.add("record", (name, 1, 1), lanes, f"the pull request's text cannot be read: {error.strerror}")
        return
    shown = str(Path(name))
    for line, message, owners in problems(text, config, project.matrix):
        findings.add("record", (shown, line, 1), owners or lanes, message.encode().decode("latin-1"))


def problems(text: str, config: RecordFields, matrix: Matrix) -> Iterator[tuple[int, str, Sequence[str]]]:
    """(line, message, lanes) of everything that a pull request's text lacks; no lanes where it concerns all of them."""
    lines = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text).replace("\r", "").split("\n")
    fields = {
        match.group(1).strip().lower(): (number, match.group(2))
        for number, line in enumerate(lines, 1)
        if (match := _FIELD.match(line))
    }
    for field in config.fields:
        found = fields.get(field.lower())
        if found is None:
            yield len(lines), f"the field {field!r} is missing", ()
        elif _EMPTY.fullmatch(found[1]):
            yield found[0], f"the field {field!r} is empty", ()
    if config.row_field is not None and config.row_field.lower() in fields:
        yield from _row(fields[config.row_field.lower()], config.row_field, lines, matrix)
    yield from _trailers(lines, config)


def _row(
    found: tuple[int, str], field: str, lines: list[str], matrix: Matrix
) -> Iterator[tuple[int, str, Sequence[str]]]:
    line, written = found
    rows = sorted({lane.row for lane in matrix.lanes if lane.row})
    named = [word for word in re.split(r"[\s,`]+", written) if word]
    for row in named:
        if row not in rows:
            close = get_close_matches(row, rows, n=1)
            yield (
                line,
                f"{field} names {row!r}, which no lane of the matrix carries"
                + (f"; did you mean {close[0]!r}?" if close else ""),
                (),
            )
    for lane in matrix.lanes:
        if lane.row and lane.row not in named:
            pattern = re.compile(rf"(?<![\w-]){re.escape(lane.id)}(?![\w-])")
            at = next((number for number, text in enumerate(lines, 1) if pattern.search(text)), None)
            if at is not None:
                yield (
                    at,
                    f"the text speaks of lane {lane.id}, which row {lane.row!r} owns, and {field} does not name it",
                    (lane.id,),
                )


def _trailers(lines: list[str], config: RecordFields) -> Iterator[tuple[int, str, Sequence[str]]]:
    """`git am` and `git interpret-trailers` drop whatever stands behind a line that begins with ---."""
    divider = next((number for number, line in enumerate(lines, 1) if _DIVIDER.match(line)), None)
    for trailer in config.trailers:
        places = [number for number, line in enumerate(lines, 1) if line.lower().startswith(f"{trailer.lower()}:")]
        if not places:
            yield len(lines), f"the trailer {trailer!r} is missing", ()
        elif divider is not None and all(number > divider for number in places):
            yield (
                places[0],
                f"the trailer {trailer!r} stands behind the --- of line {divider}, where git deletes it",
                (),
            )
        elif _EMPTY.fullmatch(lines[places[0] - 1].partition(":")[2]):
            yield places[0], f"the trailer {trailer!r} is empty", ()

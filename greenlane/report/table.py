"""The backend table of a README: row, lane, evidence and milestone, as of records that are kept beside it in a file."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from greenlane.errors import MatrixError
from greenlane.ledger.admission import sortable
from greenlane.ledger.store import write_durably
from greenlane.matrix import load
from greenlane.matrix.model import Evidence, Lane, Matrix, Stage
from greenlane.record.model import Outcome, Record
from greenlane.report.markdown import code, table
from greenlane.report.newest import ledger_of

EVIDENCE = Path("docs") / "evidence.json"
BEGIN, END = "<!-- backends: begin -->", "<!-- backends: end -->"
LADDER: tuple[tuple[str, Evidence, Stage | None], ...] = (
    ("M0", Evidence.BUILT, Stage.BUILD),
    ("M1", Evidence.TESTED, Stage.TEST),
    ("M2", Evidence.EXACT, Stage.EXACT),
    ("M3", Evidence.REACHED, Stage.REACH),
    ("M4", Evidence.RAN_ON_TARGET, None),
    ("M5", Evidence.BENCHED, Stage.BENCH),
)
LEGEND = (
    "M0 builds · M1 passes its tests · M2 whole models token-exact · M3 its own kernels proven to run · M4 all of it\n"
    "on its own device · M5 measured there. An emulated lane ends at M3. Each line holds for its commit and no other."
)


class Entry(BaseModel):
    """What one record proves of one lane."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    record: str
    commit: str
    started: str
    outcome: Outcome
    evidence: tuple[Evidence, ...]
    lane_digest: str
    device: str | None = None
    red: Stage | None = None


class Known(BaseModel):
    """The file of entries, by lane."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lanes: dict[str, Entry] = {}


def command(arguments: argparse.Namespace) -> int:
    """Print the table, write it into a file between its markers, or say whether that is stale."""
    matrix = load(arguments.matrix)
    file = arguments.matrix.resolve().parent / EVIDENCE
    known = read(file)
    if not arguments.check:
        known = joined(known, matrix, current(arguments.matrix, matrix))
    shown = render(matrix, known)
    if arguments.into is None:
        sys.stdout.write(shown)
        return 0
    before = _text(arguments.into)
    after = filled(before, shown, arguments.into)
    if arguments.check:
        return _differs(before, after, arguments.into)
    write_durably(file, (known.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode())
    write_durably(arguments.into, after.encode())
    return 0


def current(path: Path, matrix: Matrix) -> dict[str, Entry]:
    """The newest record of each lane that speaks for a commit: no dirty tree, no fork's word, nothing cut or void."""
    found: dict[str, Entry] = {}
    ledger, wanted = ledger_of(path), {lane.id for lane in matrix.lanes}
    for name, record in ledger.records():
        if record.lane in wanted and record.lane not in found and _speaks(record):
            found[record.lane] = _entry(name, record)
    return found


def _speaks(record: Record) -> bool:
    cut = any(stage.first_error is not None and stage.first_error.rule == "infra" for stage in record.stages)
    return not (record.dirty or record.trust == "fork" or record.outcome is Outcome.VOID or cut)


def _entry(name: str, record: Record) -> Entry:
    return Entry(
        record=name,
        commit=record.head,
        started=sortable(record.started),
        outcome=record.outcome,
        evidence=record.evidence,
        lane_digest=record.digests.lane,
        device=record.device.name if record.device else None,
        red=next((stage.stage for stage in record.stages if stage.outcome.is_red), None),
    )


def joined(known: Known, matrix: Matrix, fresh: Mapping[str, Entry]) -> Known:
    """By lane the later of both, so that several machines can fill one table; lanes that are gone are dropped."""
    lanes = {}
    for lane in matrix.lanes:
        entries = [entry for entry in (known.lanes.get(lane.id), fresh.get(lane.id)) if entry is not None]
        if entries:
            lanes[lane.id] = max(entries, key=lambda entry: entry.started)
    return Known(lanes=lanes)


def milestone(lane: Lane, evidence: tuple[Evidence, ...]) -> str | None:
    """The highest rung whose evidence is there, and that of every rung below for which the lane has a stage."""
    reached = None
    for name, flag, stage in LADDER:
        if flag in evidence:
            reached = name
        elif stage is None or stage in lane.gates or stage in lane.stages:
            break
    return reached


def render(matrix: Matrix, known: Known) -> str:
    rows = [_row(lane, known.lanes.get(lane.id)) for lane in sorted(matrix.lanes, key=lambda lane: lane.row or "")]
    header = ("row", "lane", "evidence", "milestone", "commit")
    return f"{table(header, rows)}\n\n{LEGEND}\n"


def _row(lane: Lane, entry: Entry | None) -> tuple[str, ...]:
    row, name = lane.row or "—", code(lane.id)
    if entry is None:
        return row, name, "_not run_", "—", "—"
    evidence = ", ".join(flag for flag in Evidence if flag in entry.evidence) or "none"
    reached = milestone(lane, entry.evidence) or "—"
    if entry.red is not None:
        evidence, reached = f"**red in {entry.red}**, before that: {evidence}", "—"
    if entry.lane_digest != lane.digest:
        evidence, reached = f"{evidence} (_before the lane was changed_)", reached if reached == "—" else f"({reached})"
    return row, name, evidence, reached, code(entry.commit[:10])


def read(file: Path) -> Known:
    if not file.exists():
        return Known()
    try:
        return Known.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        where = ".".join(str(part) for part in first["loc"])
        raise MatrixError(f"{file}: {where or 'document'}: {first['msg']}; remove the file to begin it anew") from error


def filled(text: str, shown: str, path: Path) -> str:
    """The text with the table between its markers."""
    parts = re.split(f"({re.escape(BEGIN)}\n|{re.escape(END)})", text)
    if len(parts) != 5 or (parts[1], parts[3]) != (f"{BEGIN}\n", END):
        raise MatrixError(f"{path}: the table goes between one line {BEGIN} and one line {END}; write both")
    return "".join((parts[0], parts[1], shown, parts[3], parts[4]))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise MatrixError(f"--into {path}: cannot be read: {error}") from error


def _differs(before: str, after: str, path: Path) -> int:
    lines = list(_diff(before, after, path))
    sys.stdout.writelines(lines)
    return 1 if lines else 0


def _diff(before: str, after: str, path: Path) -> Iterator[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return difflib.unified_diff(old, new, str(path), "as `greenlane report --table backends` writes it")

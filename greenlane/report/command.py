"""`greenlane report`: the newest record of every lane, for other readers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from greenlane.ledger.store import write_durably
from greenlane.matrix import load
from greenlane.record.model import Record
from greenlane.report import junit, sarif, summary, templates
from greenlane.report.newest import ledger_of, newest


def command(arguments: argparse.Namespace) -> int:
    chosen = arguments.format or default_format(arguments.output)
    if chosen in ("html", "text"):
        show(_drawn(arguments.matrix, chosen, arguments.output), arguments.output)
        return 0
    records = of_matrix(arguments.matrix)
    if chosen in FORMS:
        show(FORMS[chosen](records), arguments.output)
        return 0
    told = summary.render(records, templates.of_project(arguments.matrix))
    summary.publish(told)
    show(told, arguments.output)
    return 0


def default_format(output: Path | None) -> str:
    """Text for a person at a terminal; Markdown for a pipe or a file."""
    return "text" if output is None and sys.stdout.isatty() else "markdown"


def of_matrix(matrix: Path, lanes: Sequence[str] = ()) -> list[Record]:
    """The newest record of each lane, or of these lanes, in the matrix's order; those without one are left out."""
    found = newest(ledger_of(matrix), load(matrix))
    return [record for lane, (_, record) in found.items() if not lanes or lane in lanes]


def as_json(records: Sequence[Record]) -> str:
    lanes = [record.model_dump(mode="json", by_alias=True) for record in records]
    return json.dumps({"lanes": lanes}, indent=1, ensure_ascii=False) + "\n"


def show(text: str, output: Path | None) -> None:
    if output:
        write_durably(output, text.encode())
    else:
        sys.stdout.write(text)


def _drawn(matrix: Path, form: str, output: Path | None) -> str:
    from greenlane.report import page, terminal
    from greenlane.report.page.source import of_records, project_of

    made = of_records(ledger_of(matrix), load(matrix), project_of(matrix))
    if form == "html":
        return page.render(made, templates.of_project(matrix))
    return terminal.render(made, styled=output is None)


FORMS = {"json": as_json, "junit": junit.render, "sarif": sarif.render}

"""The step summary of a CI job: a Markdown row per lane, put where GitHub says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.record.model import Record
from greenlane.report.templates import Templates

BUDGET = 1_000_000  # bytes; GitHub drops a summary above 1 MiB
VARIABLE = "GITHUB_STEP_SUMMARY"


def render(records: Sequence[Record], templates: Templates, budget: int = BUDGET) -> str:
    """A row per lane; where they are too many, the last are counted, and red ones are kept before green ones."""
    shown = list(records)
    text = _filled(shown, records, templates)
    while len(text.encode()) > budget and shown:
        fitting = len(shown) * budget // len(text.encode())
        kept = sorted(shown, key=lambda record: not record.outcome.is_red)[: min(fitting, len(shown) - 1)]
        shown = [record for record in shown if record in kept]
        text = _filled(shown, records, templates)
    return text


def _filled(shown: Sequence[Record], records: Sequence[Record], templates: Templates) -> str:
    lanes = [
        {
            "id": record.lane,
            "outcome": str(record.outcome),
            "evidence": [str(flag) for flag in record.evidence],
            "head": record.head,
            "dirty": record.dirty,
            "error": next((stage.first_error for stage in record.stages if stage.first_error), None),
        }
        for record in shown
    ]
    return templates.render("summary.md", lanes=lanes, left_out=len(records) - len(shown))


def publish(text: str) -> None:
    """Adds the text to the job's summary, where there is one."""
    place = os.environ.get(VARIABLE)
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise EnvironmentMissing(f"${VARIABLE} {place}: cannot be written: {error.strerror}") from error


def after_run(matrix: Path, lanes: Sequence[str]) -> None:
    """A CI job that ran lanes shows how they ended."""
    if os.environ.get(VARIABLE):
        from greenlane.report import templates
        from greenlane.report.command import of_matrix

        publish(render(of_matrix(matrix, lanes), templates.of_project(matrix)))

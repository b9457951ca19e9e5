"""From the parts of a gate to the stage's result: the worst part decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from greenlane.matrix.model import Stage
from greenlane.record.fingerprint import fingerprint
from greenlane.record.model import FirstError, Outcome, StageResult

# The first of these that any part has is the gate's.
BY_WEIGHT = (
    Outcome.FAIL,
    Outcome.LOSS,
    Outcome.VOID,
    Outcome.UNDECIDED,
    Outcome.WIN,
    Outcome.WASH,
    Outcome.INERT,
    Outcome.PASS,
)


def result(stage: Stage, parts: Sequence[dict[str, Any]], key: str = "comparisons", **more: Any) -> StageResult:
    if not parts:
        return ended(stage, Outcome.VOID, "nothing was compared", {key: [], **more})
    worst = min(parts, key=lambda part: BY_WEIGHT.index(part["outcome"]))
    reason = f"{worst['name']}: {worst['reason']}" if worst.get("reason") else None
    return ended(stage, worst["outcome"], reason, {key: list(parts), **more}, worst.get("tail"))


def ended(
    stage: Stage, outcome: Outcome, reason: str | None, measurements: dict[str, Any], tail: str | None = None
) -> StageResult:
    error = None
    if outcome.is_red and reason:
        mark = fingerprint(reason, rule=stage.value)
        error = FirstError(message=reason, fingerprint=mark, rule=stage.value, raw=tail or None)
    return StageResult(stage=stage, outcome=outcome, reason=reason, first_error=error, measurements=measurements)

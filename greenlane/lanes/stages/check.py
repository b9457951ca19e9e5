"""The static checks of the whole matrix, computed once per call; this lane's findings decide."""

from __future__ import annotations

from greenlane.lanes.context import Context, Ended
from greenlane.lanes.findings import findings_of, inputs
from greenlane.record.model import Outcome


def run(context: Context) -> Ended:
    read = {"inputs": inputs(context.matrix, context.tree)}
    report = findings_of(context.matrix, context.tree)
    mine = report.for_lane(context.lane.id)
    for finding in mine:
        place = f"{finding.file}:{finding.line}:{finding.column}"
        context.log.line(f"{place}: {finding.severity}: {finding.message} [{finding.rule}]")
    for unparsed in report.unparsed:
        context.log.line(f"{unparsed.file}:{unparsed.line}: note: not understood by the checks: {unparsed.reason}")
    red = [finding for finding in mine if finding.severity in ("error", "warning")]
    outcome = Outcome.FAIL if red else Outcome.PASS
    reason = f"{len(red)} finding{'s' if len(red) != 1 else ''}" if red else None
    measured = {**read, "unparsed": len(report.unparsed), "suppressed": report.suppressed}
    return Ended(outcome, reason, measured, tuple(mine))

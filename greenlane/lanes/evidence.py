"""What the ended stages of a lane prove, and whether that is what it requires."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import Device, Outcome, StageResult

_PROOF = {
    Stage.CHECK: Evidence.CHECKED,
    Stage.BUILD: Evidence.BUILT,
    Stage.TEST: Evidence.TESTED,
    Stage.REACH: Evidence.REACHED,
    Stage.EXACT: Evidence.EXACT,
    Stage.BENCH: Evidence.BENCHED,
}
_RUNS = (Stage.TEST, Stage.REACH, Stage.EXACT, Stage.BENCH)
_MACHINES = {"arm64": "aarch64", "amd64": "x86_64", "x86-64": "x86_64"}


def evidence(lane: Lane, results: Sequence[StageResult], device: Device | None) -> tuple[Evidence, ...]:
    """In the order in which evidence is shown. Nothing that ran red, or did not run, proves anything."""
    green = {result.stage for result in results if result.outcome.is_green and result.outcome is not Outcome.INERT}
    proven = {_PROOF[stage] for stage in green if stage in _PROOF}
    if green & set(_RUNS):
        proven |= {where_it_ran(lane, device)}
    return tuple(flag for flag in Evidence if flag in proven)


def where_it_ran(lane: Lane, device: Device | None) -> Evidence:
    """An emulated run never counts for more; a sibling architecture never for the target."""
    if lane.emulate or (lane.device is None and foreign(lane)):
        return Evidence.EMULATED
    if lane.device is None:
        return Evidence.RAN_ON_TARGET
    targets = {target.rstrip("af") if target.startswith("sm_") else target for target in (*lane.archs, lane.arch or "")}
    on_target = device is not None and device.arch in targets
    return Evidence.RAN_ON_TARGET if on_target else Evidence.RAN_ON_FAMILY


def foreign(lane: Lane) -> bool:
    """Whether a CPU lane is for another instruction set than this machine's."""
    if lane.arch is None:
        return False
    wanted = _MACHINES.get(lane.arch, lane.arch)
    return wanted in ("aarch64", "x86_64", "riscv64") and wanted != platform.machine()


def outcome_of(results: Sequence[StageResult]) -> Outcome:
    """The lane's outcome before the ledger is asked: its red stage's, else pass if anything passed."""
    for result in results:
        if result.outcome.is_red:
            return result.outcome
    return Outcome.PASS if any(result.outcome.is_green for result in results) else Outcome.NOT_RUN


def missing(require: Sequence[str], proven: Sequence[Evidence]) -> tuple[Evidence, ...]:
    return tuple(flag for flag in Evidence if flag in require and flag not in proven)


def family(lane: Lane, proven: Sequence[Evidence], device: Device | None) -> dict[str, str] | None:
    """Which sibling a run that counts for the family was made on."""
    if Evidence.RAN_ON_FAMILY not in proven or device is None:
        return None
    return {"ran_on": device.arch or "unknown", "stands_beside": lane.arch or " ".join(lane.archs)}

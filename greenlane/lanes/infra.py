"""What the machine did to a lane, as the record says it: the stage that was cut, why, and that it is no verdict."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.lanes import places, plan
from greenlane.lanes.session import Session
from greenlane.matrix.model import Lane, Stage
from greenlane.record.model import FirstError, Outcome, StageResult

RULE = "infra"
FULL = os.strerror(errno.ENOSPC)
LEAST_FREE = 64 * 2**20  # bytes; below it a command's "no space left" is believed


def reason(error: EnvironmentMissing | OSError) -> str:
    """One line: what, where, what to do."""
    if isinstance(error, EnvironmentMissing):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; free space or mend the rights"


def stages(session: Session, lane: Lane) -> tuple[Stage, ...]:
    """The lane's stages in this call."""
    return plan.stages_of(lane, places.executor_name(session, lane), session.options.until)


def cut(results: dict[Stage, StageResult], planned: Sequence[Stage], why: str, log: str | None) -> None:
    """The first stage without a result was cut, and those behind it are blocked."""
    left = [stage for stage in planned if stage not in results]
    place = Stage.IMAGE if not results and Stage.IMAGE in left else left[0] if left else planned[-1]
    error = FirstError(message=why, fingerprint="", rule=RULE)
    for stage in left:
        blocked = StageResult(stage=stage, outcome=Outcome.BLOCKED, reason="the machine prevented it")
        results[stage] = blocked
    results[place] = StageResult(stage=place, outcome=Outcome.FAIL, reason=why, first_error=error, log=log)


def prevented(result: StageResult) -> bool:
    """Whether a stage's result is the machine's doing and says nothing of the lane."""
    return result.outcome is Outcome.BLOCKED or (result.first_error is not None and result.first_error.rule == RULE)


def disk_is_full(folder: Path, said: Sequence[str]) -> bool:
    """Whether a command failed because the disk is full: it says so, and the file system agrees."""
    if not any(FULL in line for line in said):
        return False
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize < LEAST_FREE or space.f_favail == 0

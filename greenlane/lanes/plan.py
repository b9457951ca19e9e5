"""Which stages a lane has, and why one of them can't run here."""

from __future__ import annotations

import json
from collections.abc import Sequence

from greenlane.errors import MatrixError
from greenlane.matrix.model import Lane, Stage

GATES = (Stage.REACH, Stage.EXACT, Stage.BENCH)
NEED_CARD = (Stage.TEST, *GATES)
HOST = "host"


def stages_of(lane: Lane, executor: str, until: Stage | None = None) -> tuple[Stage, ...]:
    """The lane's stages in order, up to and with `until`."""
    upto = list(Stage) if until is None else list(Stage)[: list(Stage).index(until) + 1]
    return tuple(stage for stage in upto if has(lane, stage, executor))


def has(lane: Lane, stage: Stage, executor: str) -> bool:
    if stage is Stage.CHECK:
        return True
    if stage is Stage.IMAGE:
        return executor != HOST or bool(lane.stages.get(stage)) or _wants_environment(lane)
    if stage in GATES:
        return bool(lane.gates.get(stage))
    return bool(lane.stages.get(stage))


def _wants_environment(lane: Lane) -> bool:
    """Whether a command speaks of the lane's own Python, which the host executor has to make first."""
    texts = json.dumps([dict(lane.stages), dict(lane.gates), dict(lane.env)], default=str)
    return "{python}" in texts or "{env}" in texts


def stage_named(name: str | None, option: str = "--until") -> Stage | None:
    """The stage that an option names."""
    if name is None:
        return None
    try:
        return Stage(name)
    except ValueError:
        raise MatrixError(f"{option} {name}: no such stage; the stages are {', '.join(Stage)}") from None


def lanes_named(known: Sequence[Lane], wanted: Sequence[str]) -> list[Lane]:
    """The lanes asked for, in that order, each once. Every unknown id is reported."""
    import difflib

    by_id = {lane.id: lane for lane in known}
    problems = []
    for name in wanted:
        if name not in by_id:
            close = difflib.get_close_matches(name, by_id, n=1)
            hint = f"did you mean {close[0]}?" if close else "`greenlane list` shows the lanes"
            problems.append(f"no lane {name!r}; {hint}")
    if problems:
        raise MatrixError(*problems)
    return [by_id[name] for name in dict.fromkeys(wanted)]


def why_not(lane: Lane, stage: Stage, has_card: bool) -> str | None:
    """Why a stage of the plan can't be run on this machine."""
    if stage in NEED_CARD and lane.device is not None and not lane.emulate and not has_card:
        return f"needs an {lane.device} card, and this machine has none"
    return None

"""One lane through its stages, and its record."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from greenlane.errors import EnvironmentMissing
from greenlane.gates.contract import Program
from greenlane.lanes import (
    evidence,
    infra,
    lease,
    machine,
    objects,
    places,
    plan,
    relevant,
    resume,
    reuse,
    stages,
    weights,
)
from greenlane.lanes.context import Context, Ended
from greenlane.lanes.interrupt import Interrupted
from greenlane.lanes.log import StageLog
from greenlane.lanes.passthrough import passed_through
from greenlane.lanes.session import Session
from greenlane.lanes.summary import LaneEnd
from greenlane.lanes.toolchain import toolchain
from greenlane.lanes.tree import read
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import SCHEMA, Finding, Outcome, Record, StageResult, Toolchain

OpenBase = Callable[[Session, Context, ExitStack], Program]
CUT = "interrupted; the same command goes on where it was cut"
TAIL = 15  # lines of a red stage's log that are shown


@dataclass
class Course:
    """A lane's way so far."""

    results: dict[Stage, StageResult]
    findings: tuple[Finding, ...] = ()
    tail: tuple[str, ...] = ()


def run(session: Session, lane: Lane, base: OpenBase | None = None) -> LaneEnd:
    """Runs what the lane's last run left undone, and writes the record. `base` makes the base's build for a gate.

    What the machine prevents is no verdict on the lane: it is recorded as such, and the next call goes on from there.
    """
    started, clock = _now(), time.monotonic()
    folder = session.state.lane(session.name_of(lane))
    if session.options.fresh:
        folder.forget()
    course, context, prevented = Course({}), None, None
    with ExitStack() as stack:
        try:
            places.say_where(session, lane)
            context = open_context(session, lane, stack)
            course.results = context.results
            if base is not None:
                context.base = partial(base, session, context, stack)
            run_stages(session, context, course)
        except (EnvironmentMissing, OSError) as error:
            if session.cancel.is_set():
                raise Interrupted(CUT) from error
            prevented = infra.reason(error)
            log = None if context is None else _log(context)
            infra.cut(course.results, infra.stages(session, lane), prevented, log)
        record = _record(session, lane, context, course, started, time.monotonic() - clock)
    return _written(session, lane, record, course, prevented)


def _written(session: Session, lane: Lane, record: Record, course: Course, prevented: str | None) -> LaneEnd:
    try:
        record_id = session.ledger.put(record)
    except (EnvironmentMissing, OSError):
        if prevented is None:
            raise
        return LaneEnd(lane.id, prevented=prevented)  # what prevented the lane prevents its record: a full disk
    if prevented is None:
        session.state.lane(session.name_of(lane)).progress.unlink(missing_ok=True)
    return LaneEnd(lane.id, record, record_id, prevented=prevented, tail=course.tail)


def open_context(session: Session, lane: Lane, stack: ExitStack, card: lease.Card | None = None) -> Context:
    """The lane's place to run in, and a card of its own or the one given, until `stack` ends."""
    folder = session.state.lane(session.name_of(lane))
    host = places.host_folders(session, lane, folder)
    folder.prepare(host)
    if card is None and not lane.emulate:
        card = stack.enter_context(lease.leased(lane.device, lane.archs, session.cancel))
    executor = stack.enter_context(places.executor_for(session, lane, host, card))
    return Context(
        lane=lane,
        matrix=session.matrix,
        tree=session.tree,
        folder=folder,
        host=host,
        executor=executor,
        device=machine.device(card, executor.name),
        jobs=places.jobs_per_lane(session.options.jobs),
        fresh=session.options.fresh,
        cancel=session.cancel,
        card=card,
        wanted_image=session.image,
    )


def run_stages(session: Session, context: Context, course: Course | None = None) -> Course:
    """The stages in order. After a red one the rest is blocked; what was green before a cut is not run again."""
    course = course or Course(context.results)
    lane = context.lane
    tree_digest = relevant.digest(context.tree, session.matrix, lane)
    key = resume.inputs_key(lane, tree_digest, context.executor.name, session.base, session.image)
    done = resume.load(context.folder.progress, key)
    for stage in plan.stages_of(lane, context.executor.name, session.options.until):
        red = next((result.stage for result in course.results.values() if result.outcome.is_red), None)
        if stage in plan.GATES and red is None and context.model is None:
            context.model = weights.digest(context)
        if red is not None:
            course.results[stage] = StageResult(stage=stage, outcome=Outcome.BLOCKED, reason=f"{red} is red")
        elif stage in done:
            course.results[stage] = done[stage]
            session.progress.said(f"{lane.id} {stage} kept from the run that was cut")
        elif (reason := plan.why_not(lane, stage, context.card is not None)) is not None:
            course.results[stage] = StageResult(stage=stage, outcome=Outcome.NOT_RUN, reason=reason)
        else:
            _run_stage(session, context, course, stage)
            resume.save(context.folder.progress, key, list(course.results.values()))
    return course


def _run_stage(session: Session, context: Context, course: Course, stage: Stage) -> None:
    lane = context.lane
    started, clock = _now(), time.monotonic()
    session.progress.stage_started(lane.id, stage)
    context.log = StageLog(
        context.folder.logs / f"{stage}.log",
        secrets=passed_through(lane).values(),
        watch=lambda line: session.progress.line(lane.id, line),
    )
    try:
        ended = stages.load(stage).run(context)
    finally:
        context.log.close()
    if session.cancel.is_set():
        raise Interrupted(CUT)
    result = _result(context, stage, ended, started, time.monotonic() - clock)
    course.results[stage] = result
    course.findings += ended.findings
    if result.outcome.is_red:
        course.tail = tuple(context.log.tail(TAIL)) if stage is not Stage.CHECK else ()
    session.progress.stage_ended(lane.id, result)


def _result(context: Context, stage: Stage, ended: Ended, started: str, seconds: float) -> StageResult:
    error = ended.gate.first_error if ended.gate is not None else None
    if error is None and ended.outcome is Outcome.FAIL and stage is not Stage.CHECK:
        from greenlane.lanes.first_error import first_error  # its patterns take a while to compile

        inside = context.executor.inside
        error = first_error(context.log.lines(), stage, str(inside.source), str(inside.build))
    return StageResult(
        stage=stage,
        outcome=ended.outcome,
        reason=ended.reason,
        started=started,
        duration_s=round(seconds, 3),
        first_error=error,
        log=_log(context),
        measurements=dict(ended.measurements),
    )


def _log(context: Context) -> str | None:
    """The log of the newest stage, relative to the state folder."""
    log = context.log.path
    return None if log is None else log.relative_to(context.folder.state).as_posix()


def _record(
    session: Session, lane: Lane, context: Context | None, course: Course, started: str, seconds: float
) -> Record:
    """The record of what ran; without a context the lane never had a place to run in."""
    tree = session.tree
    device = context.device if context else None
    results = tuple(course.results.values())
    moved = read(tree.path).digest() != tree.digest()
    built = course.results.get(Stage.BUILD)
    proven: tuple[Evidence, ...] = evidence.evidence(lane, results, device)
    return Record(
        schema=SCHEMA,
        lane=lane.id,
        head=tree.head,
        base=tree.base or session.base,
        merge_tree=tree.merge_tree,
        dirty=tree.dirty or moved,
        digests=reuse.digests(
            session, lane, image=context.image if context else None, model=context.model if context else None
        ),
        toolchain=_toolchain(context, lane, built),
        device=device,
        evidence=() if moved else proven,
        stages=results,
        findings=course.findings,
        outcome=Outcome.VOID if moved else evidence.outcome_of(results),
        require=tuple(flag for flag in Evidence if flag in lane.require),
        row=lane.row,
        trust=places.trust(),
        started=started,
        duration_s=round(seconds, 3),
        family=evidence.family(lane, proven, device),
    )


def _toolchain(context: Context | None, lane: Lane, built: StageResult | None) -> Toolchain:
    if context is None:
        return Toolchain(toolkit=lane.toolkit)
    return toolchain(context.host.build, lane.toolkit, objects.architectures(built))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

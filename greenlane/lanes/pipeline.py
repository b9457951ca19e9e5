"""One lane through its stages, and its record."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from greenlane.gates.contract import Program
from greenlane.lanes import evidence, lease, machine, objects, places, plan, relevant, resume, reuse, stages
from greenlane.lanes.context import Context, Ended
from greenlane.lanes.first_error import first_error
from greenlane.lanes.interrupt import Interrupted
from greenlane.lanes.log import StageLog
from greenlane.lanes.passthrough import passed_through
from greenlane.lanes.session import Session
from greenlane.lanes.summary import LaneEnd
from greenlane.lanes.toolchain import toolchain
from greenlane.lanes.tree import read
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import SCHEMA, Finding, Outcome, Record, StageResult

OpenBase = Callable[[Session, Context, ExitStack], Program]
TAIL = 15  # lines of a red stage's log that are shown


@dataclass
class Course:
    """A lane's way so far."""

    results: dict[Stage, StageResult]
    findings: tuple[Finding, ...] = ()
    tail: tuple[str, ...] = ()


def run(session: Session, lane: Lane, base: OpenBase | None = None) -> LaneEnd:
    """Runs what the lane's last run left undone, and writes the record. `base` makes the base's build for a gate."""
    started, clock = _now(), time.monotonic()
    folder = session.state.lane(session.name_of(lane))
    if session.options.fresh:
        folder.forget()
    with ExitStack() as stack:
        places.say_where(session, lane)
        context = open_context(session, lane, stack)
        if base is not None:
            context.base = lambda: base(session, context, stack)
        course = run_stages(session, context)
        record = _record(session, context, course, started, time.monotonic() - clock)
    record_id = session.ledger.put(record)
    folder.progress.unlink(missing_ok=True)
    return LaneEnd(lane.id, record, record_id, tail=course.tail)


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


def run_stages(session: Session, context: Context) -> Course:
    """The stages in order. After a red one the rest is blocked; what was green before a cut is not run again."""
    lane = context.lane
    tree_digest = relevant.digest(context.tree, session.matrix, lane)
    key = resume.inputs_key(lane, tree_digest, context.executor.name, session.base, session.image)
    done = resume.load(context.folder.progress, key)
    course = Course(context.results)
    for stage in plan.stages_of(lane, context.executor.name, session.options.until):
        red = next((result.stage for result in course.results.values() if result.outcome.is_red), None)
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
        raise Interrupted("interrupted; the same command goes on where it was cut")
    result = _result(context, stage, ended, started, time.monotonic() - clock)
    course.results[stage] = result
    course.findings += ended.findings
    if result.outcome.is_red:
        course.tail = tuple(context.log.tail(TAIL)) if stage is not Stage.CHECK else ()
    session.progress.stage_ended(lane.id, result)


def _result(context: Context, stage: Stage, ended: Ended, started: str, seconds: float) -> StageResult:
    error = ended.gate.first_error if ended.gate is not None else None
    if error is None and ended.outcome is Outcome.FAIL and stage is not Stage.CHECK:
        inside = context.executor.inside
        error = first_error(context.log.lines(), stage, str(inside.source), str(inside.build))
    log = context.log.path
    return StageResult(
        stage=stage,
        outcome=ended.outcome,
        reason=ended.reason,
        started=started,
        duration_s=round(seconds, 3),
        first_error=error,
        log=None if log is None else log.relative_to(context.folder.state).as_posix(),
        measurements=dict(ended.measurements),
    )


def _record(session: Session, context: Context, course: Course, started: str, seconds: float) -> Record:
    lane, tree = context.lane, context.tree
    results = tuple(course.results.values())
    moved = read(tree.path).digest() != tree.digest()
    built = course.results.get(Stage.BUILD)
    proven: tuple[Evidence, ...] = evidence.evidence(lane, results, context.device)
    return Record(
        schema=SCHEMA,
        lane=lane.id,
        head=tree.head,
        base=tree.base or session.base,
        merge_tree=tree.merge_tree,
        dirty=tree.dirty or moved,
        digests=reuse.digests(session, lane, image=context.image),
        toolchain=toolchain(context.host.build, lane.toolkit, objects.architectures(built)),
        device=context.device,
        evidence=() if moved else proven,
        stages=results,
        findings=course.findings,
        outcome=Outcome.VOID if moved else evidence.outcome_of(results),
        require=tuple(flag for flag in Evidence if flag in lane.require),
        row=lane.row,
        trust=places.trust(),
        started=started,
        duration_s=round(seconds, 3),
        family=evidence.family(lane, proven, context.device),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

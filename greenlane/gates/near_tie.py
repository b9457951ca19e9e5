"""The near_tie policy: where a device parts from an oracle, teacher forcing weighs the tokens of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from greenlane.gates import compare
from greenlane.gates.anchors import Anchor, Anchored, Gap
from greenlane.gates.commands import Failed
from greenlane.gates.compare import Divergence
from greenlane.gates.generation import Answer
from greenlane.gates.teacher import Scored, Teacher
from greenlane.record.model import Outcome

GAP_TOLERANCE = 0.01  # nats; a teacher in float32 on another CPU adds in another order


@dataclass(frozen=True)
class Judged:
    """One prompt that parted from the oracle."""

    divergence: Divergence
    gaps: tuple[Gap, ...]  # everywhere the device's token is not the teacher's best
    oracle_gap: float | None  # how far the oracle's token stands below the teacher's best where the two part
    problems: tuple[str, ...] = field(default=())

    @property
    def largest(self) -> float:
        return max([gap.gap_nats for gap in self.gaps] + [self.oracle_gap or 0.0])


def judge(paired: Sequence[tuple[Answer, Answer]], teacher: Teacher, margin: float) -> list[Judged]:
    """The prompts that part, each scored whole on the device's ids and once on the oracle's token where they part."""
    parted = [(a, b, d) for a, b in paired if (d := compare.divergence(a, b)) is not None]
    sequences = []
    for left, right, where in parted:
        if where.left is None or where.right is None:
            text = f"{where.prompt!r} ends after {where.index} tokens in one arm only: no gap can be measured"
            raise Failed(Outcome.FAIL, text)
        prompt = left.prompt_token_ids or right.prompt_token_ids
        if prompt is None:
            raise Failed(
                Outcome.VOID, f"{where.prompt!r}: neither arm printed prompt_token_ids, so nothing can be scored"
            )
        sequences.append((prompt, left.token_ids))
        sequences.append((prompt, (*left.token_ids[: where.index], where.right)))
    scored = teacher.score(sequences) if sequences else []
    return [judged(d, scored[2 * i], scored[2 * i + 1], margin) for i, (_, _, d) in enumerate(parted)]


def judged(where: Divergence, device: Scored, oracle: Scored, margin: float) -> Judged:
    gaps = gaps_of(device)
    oracle_gap = oracle.gap(where.index)
    problems = [
        f"{where.prompt!r} index {gap.index}: token {gap.token_id} is {gap.gap_nats:.4f} nats below {gap.best}"
        for gap in gaps
        if gap.gap_nats > margin
    ]
    if oracle_gap > margin:  # else a teacher that is the device itself would excuse everything
        problems.append(
            f"{where.prompt!r} index {where.index}: the teacher puts the oracle's token {where.right}"
            f" {oracle_gap:.4f} nats below its best, so it is no witness for this oracle"
        )
    if where.right_margin is not None and where.right_margin > margin:
        problems.append(
            f"{where.prompt!r} index {where.index}: the oracle itself put every other token at least"
            f" {where.right_margin:.4f} nats below {where.right}, and the device chose {where.left}"
        )
    return Judged(where, gaps, oracle_gap, tuple(problems))


def gaps_of(scored: Scored) -> tuple[Gap, ...]:
    return tuple(
        Gap(
            index=index,
            token_id=token,
            best=scored.best[index].token_id,
            gap_nats=round(scored.gap(index), 6),
            runner_up=scored.runner_up[index].token_id,
            runner_up_margin_nats=round(scored.margin(index), 6),
        )
        for index, token in enumerate(scored.token_ids)
        if token != scored.best[index].token_id
    )


def drift(answers: Sequence[Answer], limits: Mapping[str, int], anchor: Anchor) -> list[str]:
    """Every prompt whose ids are not the anchor's: on its own device there is no near tie."""
    known = {request.name: request for request in anchor.requests}
    missing = [answer.name for answer in answers if answer.name not in known]
    if missing:
        raise Failed(Outcome.VOID, f"the anchor has no ids for {', '.join(map(repr, missing))}; capture again")
    named = {answer.name or "": answer for answer in answers}
    return [text for name, answer in named.items() if (text := drifted(answer, limits[name], known[name]))]


def drifted(answer: Answer, limit: int, anchored: Anchored) -> str | None:
    if answer.prompt_token_ids is not None and answer.prompt_token_ids != anchored.prompt_token_ids:
        raise Failed(Outcome.VOID, f"{answer.name!r} is tokenised differently than when its anchor was captured")
    recorded = Answer(name=answer.name, token_ids=anchored.token_ids[:limit])
    where = compare.divergence(answer, recorded)
    return None if where is None else f"drift from the device's own anchor: {where}"


def against_recorded(results: Sequence[Judged], anchor: Anchor, margin: float, same_teacher: bool) -> list[str]:
    """The anchor's own gaps: each within the margin, and what teacher forcing gives now."""
    problems = []
    now = {result.divergence.prompt: {gap.index: gap for gap in result.gaps} for result in results}
    for request in anchor.requests:
        for gap in request.gaps:
            if gap.gap_nats > margin:
                problems.append(f"anchor {request.name!r} index {gap.index}: recorded gap {gap.gap_nats:.4f} nats")
        if same_teacher and request.name in now:
            problems += recorded_otherwise(request, now[request.name])
    return problems


def recorded_otherwise(request: Anchored, now: Mapping[int, Gap]) -> list[str]:
    recorded = {gap.index: gap for gap in request.gaps}
    problems = []
    for index in sorted(recorded.keys() | now.keys()):
        before = recorded[index].gap_nats if index in recorded else 0.0
        after = now[index].gap_nats if index in now else 0.0
        if abs(before - after) > GAP_TOLERANCE:
            text = (
                f"anchor {request.name!r} index {index}: recorded gap {before:.4f}, teacher forcing gives {after:.4f}"
            )
            problems.append(f"{text} nats")
    return problems

"""The engine's loop: schedule, launch, wait, hand out. One step at a time, on one thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from engine.batch import Batch
from engine.choice import Choice, SampledToken
from engine.errors import DeviceFailed
from engine.outputs import PromptScores, TokenLogprob
from engine.scheduler import Plan, Scheduler
from engine.sequence import FinishReason, Sequence

if TYPE_CHECKING:
    from engine import _core


@dataclass
class Statistics:
    """Since the start. A step that computes prompt tokens counts as prefill, the others as decode."""

    steps: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    decode_tokens: int = 0  # sampled in steps without prompt tokens
    schedule_s: float = 0.0  # deciding what the next step computes
    launch_s: float = 0.0  # carrying it over to the core
    hand_out_s: float = 0.0  # appending, decoding and passing on what came back

    @property
    def prefill_tokens_per_s(self) -> float:
        return self.prompt_tokens / self.prefill_s if self.prefill_s else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        return self.decode_tokens / self.decode_s if self.decode_s else 0.0


@dataclass
class _Launched:
    plan: Plan
    pending: _core.PendingStep


class Loop:
    """`lagged`: schedule with what was known one step ago, so that the device never waits for the host.

    The order of decisions is the same with the mirror on or off; only the moment of waiting differs.
    """

    def __init__(self, scheduler: Scheduler, runner: _core.Runner, *, lagged: bool) -> None:
        self.scheduler = scheduler
        self.statistics = Statistics()
        self.choices: dict[int, Choice] = {}  # by sequence id
        self.scores: dict[int, PromptScores] = {}
        self._batch = Batch(runner)
        self._mirror = runner.mirror
        self._lagged = lagged
        self._in_flight: deque[_Launched] = deque()
        self._last_end = 0.0

    @property
    def has_work(self) -> bool:
        return self.scheduler.has_work or bool(self._in_flight)

    def add(self, choice: Choice, scores: PromptScores | None = None) -> None:
        self.scheduler.add(choice.sequence)
        self.choices[choice.sequence.id] = choice
        if scores is not None:
            self.scores[choice.sequence.id] = scores

    def abort(self, sequence: Sequence, reason: FinishReason = FinishReason.ABORT, error: str | None = None) -> None:
        self.scheduler.finish(sequence, reason)
        self.scores.pop(sequence.id, None)
        choice = self.choices.pop(sequence.id, None)
        if choice is not None:
            choice.end(reason, error)

    def step(self) -> None:
        """Launch the next step; hand out the results of the one that is due."""
        started = time.perf_counter()
        plan = self.scheduler.schedule()
        self.statistics.schedule_s += time.perf_counter() - started
        if not self._in_flight:
            self._last_end = started
        due = self._in_flight.popleft() if self._in_flight else None
        try:
            if due is not None and not self._mirror:
                due.pending.wait()
            if plan is not None:
                self._launch(plan)
            if due is None and not self._lagged and self._in_flight:
                due = self._in_flight.popleft()
            if due is not None:
                output = due.pending.wait()
                arrived = time.perf_counter()
                self._hand_out(due, output)
                self.statistics.hand_out_s += time.perf_counter() - arrived
        except (RuntimeError, MemoryError) as error:
            raise DeviceFailed(f"the device failed while computing: {error}") from error
        if plan is None and due is None and self.scheduler.has_work:
            raise DeviceFailed("no waiting request can be scheduled; this is a fault of the engine, please report it")

    def _launch(self, plan: Plan) -> None:
        started = time.perf_counter()
        self._in_flight.append(_Launched(plan, self._batch.launch(plan)))
        self.statistics.launch_s += time.perf_counter() - started

    def _hand_out(self, done: _Launched, output: _core.StepOutput) -> None:
        self._count(done.plan)
        if output.prompt_logprobs:
            sequence_of = dict(zip(done.plan.rows, done.plan.sequences, strict=True))
            for scored in output.prompt_logprobs:
                self._score(sequence_of[scored.row], scored)
        token_ids: list[int] = output.token_ids.tolist()
        tokens = zip(done.plan.sampled, _tokens(token_ids, output, done.plan.sampled), strict=True)
        wanted = [pair for pair in tokens if not pair[0].finished]
        self.scheduler.commit(done.plan, token_ids)
        for sequence, token in wanted:
            self._push(sequence, token)

    def _push(self, sequence: Sequence, token: SampledToken) -> None:
        if sequence.grammar is not None and sequence.grammar.accept(token.token_id):
            if sequence.grammar.error:
                self.abort(sequence, FinishReason.ERROR, f"the grammar can't go on: {sequence.grammar.error}")
                return
            self.scheduler.finish(sequence, FinishReason.STOP)
        if self.choices[sequence.id].push(token):
            self.scheduler.finish(sequence, FinishReason.STOP)
        if sequence.finished:
            del self.choices[sequence.id]
            self.scores.pop(sequence.id, None)

    def _score(self, sequence: Sequence, scored: _core.PromptLogprobs) -> None:
        scores = self.scores.get(sequence.id)
        if scores is None:
            return
        known = len(scores.logprobs) - (scored.start - 1)  # a preempted prompt is computed again
        scores.logprobs += scored.logprobs[known:].tolist()
        scores.best += _pairs(scored.best_ids[known:].tolist(), scored.best_logprobs[known:].tolist())
        scores.runner_up += _pairs(scored.runner_up_ids[known:].tolist(), scored.runner_up_logprobs[known:].tolist())

    def _count(self, plan: Plan) -> None:
        now = time.perf_counter()
        spent, self._last_end = now - self._last_end, now
        statistics = self.statistics
        statistics.steps += 1
        statistics.output_tokens += len(plan.sampled)
        if plan.num_prompt_tokens:
            statistics.prompt_tokens += plan.num_prompt_tokens
            statistics.prefill_s += spent
        else:
            statistics.decode_tokens += len(plan.sampled)
            statistics.decode_s += spent


def _tokens(token_ids: list[int], output: _core.StepOutput, sampled: SequenceOf[Sequence]) -> Iterable[SampledToken]:
    runner_up = _pairs(output.runner_up_ids.tolist(), output.runner_up_logprobs.tolist())
    tops: Iterable[list[TokenLogprob]] = repeat([], len(token_ids))
    if any(sequence.params.logprobs for sequence in sampled):
        asked = zip(output.top_ids, output.top_logprobs, strict=True)
        tops = [_pairs(ids.tolist(), logprobs.tolist()) for ids, logprobs in asked]
    return map(SampledToken._make, zip(token_ids, output.logprobs.tolist(), runner_up, tops, strict=True))


def _pairs(ids: list[int], logprobs: list[float]) -> list[TokenLogprob]:
    return list(map(TokenLogprob._make, zip(ids, logprobs, strict=True)))

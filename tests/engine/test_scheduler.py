"""The scheduler and the loop over a runner that notices every mix-up of blocks, rows and positions."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.block_manager import BlockManager
from engine.choice import Choice
from engine.errors import KVCacheTooSmall, RequestError
from engine.loop import Loop
from engine.outputs import Completion
from engine.sampling_params import SamplingParams
from engine.scheduler import Scheduler
from engine.sequence import FinishReason, Sequence, State
from tests.engine.fake_core import FakeRunner, expected_output


class Words:
    """Stands in for a tokenizer: token n is written as `n `."""

    def token_bytes(self, token_id: int, *, keep_special: bool = False) -> bytes:
        return f"{token_id} ".encode()

    def detokenizer(self, *, keep_special: bool = False) -> Any:
        from engine.tokenizer.detokenizer import Detokenizer

        return Detokenizer(self, keep_special=keep_special)


class Engine:
    def __init__(
        self,
        *,
        num_blocks: int = 64,
        block_size: int = 4,
        max_num_seqs: int = 8,
        budget: int = 32,
        prefix_cache: bool = True,
        mirror: bool = False,
        lagged: bool = False,
    ) -> None:
        self.runner = FakeRunner(num_blocks, block_size, max_num_seqs, budget, mirror=mirror)
        self.scheduler = Scheduler(
            BlockManager(num_blocks, block_size, prefix_cache=prefix_cache),
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=budget,
            context_length=1000,
        )
        self.loop = Loop(self.scheduler, self.runner, lagged=lagged or mirror)  # type: ignore[arg-type]
        self.count = 0

    def add(self, prompt: list[int], max_tokens: int = 5, **extra: Any) -> Choice:
        self.count += 1
        params = extra.pop("params", SamplingParams(max_tokens=max_tokens))
        sequence = Sequence(self.count, list(prompt), len(prompt), max_tokens, params, seed=0, **extra)
        choice = Choice(sequence, Completion(0, 0), Words(), None)  # type: ignore[arg-type]
        self.loop.add(choice)
        return choice

    def run(self) -> None:
        for _ in range(100_000):
            if not self.loop.has_work:
                return
            self.loop.step()
        raise AssertionError("the loop does not end")

    def check_empty(self) -> None:
        blocks = self.scheduler.blocks
        assert blocks.num_free == blocks.num_blocks
        assert len(self.scheduler.waiting) == 0 and self.scheduler.running == [] and self.loop.choices == {}
        assert sorted(self.scheduler._free_rows) == list(range(self.runner.max_num_seqs))


PROMPTS = st.lists(st.integers(0, 3), min_size=1, max_size=40)
REQUESTS = st.lists(
    st.tuples(PROMPTS, st.integers(1, 20), st.integers(0, 15), st.integers(0, 2), st.sampled_from([None, "a", "b"])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(
    requests=REQUESTS,
    num_blocks=st.integers(16, 40),
    budget=st.sampled_from([1, 7, 16, 64]),
    rows=st.integers(1, 6),
    prefix_cache=st.booleans(),
    mode=st.sampled_from(["plain", "lagged", "mirror"]),
)
def test_every_request_gets_the_tokens_it_would_get_alone(
    requests: list[Any], num_blocks: int, budget: int, rows: int, prefix_cache: bool, mode: str
) -> None:
    engine = Engine(
        num_blocks=num_blocks,
        max_num_seqs=rows,
        budget=budget,
        prefix_cache=prefix_cache,
        mirror=mode == "mirror",
        lagged=mode != "plain",
    )
    stop = frozenset({7})
    waiting = sorted(enumerate(requests), key=lambda entry: entry[1][2])
    choices: dict[int, Choice] = {}
    step = 0
    while waiting or engine.loop.has_work:
        while waiting and waiting[0][1][2] <= step:
            index, (prompt, count, _, priority, client) = waiting.pop(0)
            choices[index] = engine.add(prompt, count, stop_ids=stop, priority=priority, client=client)
        if engine.loop.has_work:
            engine.loop.step()
        step += 1
        assert step < 10_000
    for index, (prompt, count, *_) in enumerate(requests):
        completion = choices[index].completion
        assert completion.token_ids == expected_output(prompt, count, stop)
        ended = FinishReason.STOP if completion.token_ids[-1] in stop else FinishReason.LENGTH
        assert completion.finish_reason is ended
    engine.check_empty()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), mode=st.sampled_from(["plain", "lagged", "mirror"]))
def test_aborted_requests_leave_nothing_behind_and_disturb_nobody(seed: int, mode: str) -> None:
    rng = random.Random(seed)
    engine = Engine(num_blocks=16, max_num_seqs=4, budget=16, mirror=mode == "mirror", lagged=mode != "plain")
    kept: list[tuple[list[int], Choice]] = []
    for _ in range(30):
        prompt = [rng.randrange(4) for _ in range(rng.randrange(1, 30))]
        choice = engine.add(prompt, 10)
        if rng.random() < 0.4:
            engine.loop.step()
            engine.loop.abort(choice.sequence)
            assert choice.completion.finish_reason is not None
        else:
            kept.append((prompt, choice))
    engine.run()
    for prompt, choice in kept:
        assert choice.completion.token_ids == expected_output(prompt, 10)
    engine.check_empty()


def test_mirror_on_and_off_make_the_same_batches() -> None:
    steps = []
    for mirror in (True, False):
        engine = Engine(mirror=mirror, lagged=True, num_blocks=12, max_num_seqs=3)
        for length in (3, 17, 9, 11, 6):
            engine.add([length] * length, 12, stop_ids=frozenset({5, 11, 23}))
            engine.loop.step()
        engine.run()
        steps.append(engine.runner.steps)
    assert steps[0] == steps[1]


def test_the_mirror_launches_a_step_before_reading_the_one_before() -> None:
    engine = Engine(mirror=True)
    engine.add([1, 2, 3], 5)
    engine.loop.step()
    assert engine.runner.unread == 1
    engine.loop.step()
    assert engine.runner.unread == 1 and len(engine.runner.steps) == 2


class Device(FakeRunner):
    """Notes how many steps were launched when the host first waits for a step's tokens."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.waits: list[tuple[int, int]] = []

    def launch(self, *arguments: Any, **named: Any) -> Any:
        pending = super().launch(*arguments, **named)
        number, wait = len(self.steps), pending.wait

        def noted() -> Any:
            if not pending.waited:
                self.waits.append((number, len(self.steps)))
            return wait()

        pending.wait = noted  # type: ignore[method-assign]
        return pending


class NoMask:
    """A grammar that allows every token, and notes what it was told before each mask."""

    error = ""

    def __init__(self) -> None:
        self.accepted: list[int] = []
        self.masked_after: list[int] = []

    def mask(self) -> Any:
        self.masked_after.append(len(self.accepted))
        return None

    def accept(self, token_id: int) -> bool:
        self.accepted.append(token_id)
        return False


@pytest.mark.parametrize("mode", ["plain", "lagged", "mirror"])
def test_a_grammar_knows_every_token_before_the_next_is_masked(mode: str) -> None:
    engine = Engine(mirror=mode == "mirror", lagged=mode != "plain")
    grammar = NoMask()
    free = engine.add([1, 2], 12)
    bound = engine.add([3, 4, 5], 8, grammar=grammar)
    engine.run()
    assert free.completion.token_ids == expected_output([1, 2], 12, frozenset())
    assert bound.completion.token_ids == grammar.accepted == expected_output([3, 4, 5], 8, frozenset())
    assert grammar.masked_after == list(range(8))


@pytest.mark.parametrize("mirror", [True, False])
def test_with_the_mirror_no_launch_waits_for_sampled_tokens(mirror: bool) -> None:
    """The device always has its next step before the host asks for the tokens of the last one."""
    engine = Engine(mirror=mirror, lagged=True, max_num_seqs=4)
    device = Device(64, 4, 4, 32, mirror=mirror)
    engine.loop = Loop(engine.scheduler, device, lagged=True)  # type: ignore[arg-type]
    choices = [engine.add([n] * (3 + n), 20, stop_ids=frozenset({11})) for n in range(6)]
    engine.run()
    for n, choice in enumerate(choices):
        assert choice.completion.token_ids == expected_output([n] * (3 + n), 20, frozenset({11}))
    late = [number for number, launched in device.waits if launched == number]
    last = len(device.steps)
    assert len(device.waits) == last
    assert late == [last] if mirror else len(late) > last // 2


def test_preempted_sequence_keeps_its_tokens() -> None:
    engine = Engine(num_blocks=8, max_num_seqs=4)
    choices = [engine.add([n] * 7, 20) for n in range(3)]
    engine.run()
    assert engine.scheduler.preemptions > 0
    for n, choice in enumerate(choices):
        assert choice.completion.token_ids == expected_output([n] * 7, 20)


def test_the_last_by_priority_is_preempted_first() -> None:
    engine = Engine(num_blocks=8, max_num_seqs=4)
    low = engine.add([1] * 7, 20, priority=5)
    high = engine.add([2] * 7, 20, priority=0)
    engine.run()
    assert low.sequence.preemptions > 0 and high.sequence.preemptions == 0


def test_a_long_prompt_does_not_hold_up_a_short_one() -> None:
    engine = Engine(num_blocks=200, budget=16)
    long = engine.add([1] * 400, 1)
    engine.loop.step()
    short = engine.add([2] * 6, 1)
    engine.loop.step()
    assert short.completion.token_ids and not long.completion.token_ids


def test_decoding_goes_on_while_a_prompt_is_computed_in_chunks() -> None:
    engine = Engine(num_blocks=200, budget=16)
    first = engine.add([1] * 4, 50)
    engine.loop.step()
    engine.add([2] * 100, 1)
    before = len(first.completion.token_ids)
    for _ in range(5):
        engine.loop.step()
    assert len(first.completion.token_ids) == before + 5


def test_a_clients_flood_does_not_starve_another_client() -> None:
    engine = Engine(max_num_seqs=1)
    flood = [engine.add([n, 1], 4, client="busy") for n in range(20)]
    single = engine.add([9, 9], 4, client="quiet")
    while single.completion.finish_reason is None:
        engine.loop.step()
    assert sum(choice.completion.finish_reason is not None for choice in flood) <= 2


def test_a_smaller_priority_number_goes_first() -> None:
    engine = Engine(max_num_seqs=1)
    engine.add([1], 3)
    late = engine.add([2], 3, priority=1)
    urgent = engine.add([3], 3, priority=-1)
    while urgent.completion.finish_reason is None:
        engine.loop.step()
    assert not late.completion.token_ids


def test_a_prompt_seen_before_is_not_computed_again() -> None:
    engine = Engine()
    prompt = list(range(20))
    engine.add(prompt, 2)
    engine.run()
    before = len(engine.runner.steps)
    again = engine.add(prompt, 2)
    engine.run()
    assert engine.runner.steps[before][0][1:] == (16, 4)
    assert again.sequence.num_cached_tokens == 16
    assert again.completion.token_ids == expected_output(prompt, 2)


def test_choices_of_one_request_share_its_prompt() -> None:
    engine = Engine()
    prompt = list(range(20))
    first = engine.add(prompt, 3)
    second = engine.add(prompt, 3, leader=first.sequence)
    engine.run()
    assert second.sequence.num_cached_tokens == 16
    assert second.completion.token_ids == first.completion.token_ids


def test_a_stop_string_across_tokens_ends_the_request() -> None:
    engine = Engine()
    tokens = expected_output([1, 2], 6)
    stop = f"{tokens[2]} {tokens[3]}"
    choice = engine.add([1, 2], 20, params=SamplingParams(max_tokens=20, stop=[stop]))
    engine.run()
    assert choice.completion.token_ids == tokens[:4]
    assert choice.completion.text == f"{tokens[0]} {tokens[1]} "
    assert choice.completion.finish_reason is FinishReason.STOP and choice.completion.stop == stop


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "error", "says"),
    [
        (0, 1, RequestError, "empty"),
        (1000, 1, RequestError, "shorten the prompt to 999"),
        (990, 11, RequestError, "lower max_tokens to 10"),
        (60, 10, KVCacheTooSmall, "in which 64 tokens fit"),
    ],
)
def test_what_can_never_run_is_refused_at_once(prompt: int, max_tokens: int, error: type, says: str) -> None:
    engine = Engine(num_blocks=16)
    with pytest.raises(error, match=says):
        engine.add([1] * prompt, max_tokens)
    assert not engine.loop.has_work


def test_a_request_that_just_fits_the_cache_runs() -> None:
    engine = Engine(num_blocks=4)
    choice = engine.add([1] * 10, 7)
    engine.run()
    assert len(choice.completion.token_ids) == 7 and choice.sequence.state is State.FINISHED

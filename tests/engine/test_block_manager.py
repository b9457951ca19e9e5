"""Blocks: counted, shared and reused without ever being in two states at once."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.block_manager import BlockManager, chained_hash
from engine.sampling_params import SamplingParams
from engine.sequence import Sequence


def sequence(tokens: list[int]) -> Sequence:
    return Sequence(1, list(tokens), len(tokens), 100, SamplingParams(), seed=0)


def admit(blocks: BlockManager, one: Sequence) -> None:
    blocks.admit(one, *blocks.find_prefix(one))
    assert blocks.grow(one, len(one.token_ids))


def compute(blocks: BlockManager, one: Sequence) -> None:
    one.num_computed = len(one.token_ids)
    blocks.register(one)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 100_000), num_blocks=st.integers(4, 20), prefix_cache=st.booleans())
def test_every_block_is_held_or_free_and_a_shared_one_holds_the_same_tokens(
    seed: int, num_blocks: int, prefix_cache: bool
) -> None:
    rng = random.Random(seed)
    blocks = BlockManager(num_blocks, 2, prefix_cache=prefix_cache)
    content: dict[int, tuple[int, ...]] = {}
    live: list[Sequence] = []
    for _ in range(60):
        if live and rng.random() < 0.45:
            blocks.release(live.pop(rng.randrange(len(live))))
        else:
            one = sequence([rng.randrange(2) for _ in range(rng.randrange(1, 9))])
            prefix, hashes = blocks.find_prefix(one)
            for index, block in enumerate(prefix):
                assert content[block] == tuple(one.token_ids[: 2 * index + 2]), "a hit with other tokens"
            if not blocks.can_admit(one, prefix, spare=0):
                continue
            blocks.admit(one, prefix, hashes)
            assert blocks.grow(one, len(one.token_ids))
            for index, block in enumerate(one.blocks):
                content[block] = tuple(one.token_ids[: 2 * index + 2])
            compute(blocks, one)
            live.append(one)
        held = {block for one in live for block in one.blocks}
        assert len(held) == blocks.num_used
        assert blocks.num_free + len(held) == num_blocks
    for one in live:
        blocks.release(one)
    assert blocks.num_free == num_blocks


def test_growing_beyond_what_is_free_changes_nothing() -> None:
    blocks = BlockManager(2, 4)
    one = sequence([1])
    assert blocks.grow(one, 8) and not blocks.grow(one, 9)
    assert len(one.blocks) == 2 and blocks.num_free == 0


def test_a_prefix_leaves_one_token_to_compute() -> None:
    blocks = BlockManager(8, 4)
    first = sequence([1, 2, 3, 4])
    admit(blocks, first)
    compute(blocks, first)
    assert blocks.find_prefix(sequence([1, 2, 3, 4]))[0] == []
    assert blocks.find_prefix(sequence([1, 2, 3, 4, 5]))[0] == first.blocks


def test_the_block_released_longest_ago_is_reused_first() -> None:
    blocks = BlockManager(2, 1)
    old, new = sequence([1]), sequence([2])
    for one in (old, new):
        admit(blocks, one)
        compute(blocks, one)
    (first,) = old.blocks
    blocks.release(old)
    blocks.release(new)
    third = sequence([3])
    admit(blocks, third)
    assert third.blocks == [first]
    assert blocks.find_prefix(sequence([2, 9]))[0] and not blocks.find_prefix(sequence([1, 9]))[0]


def test_a_hash_speaks_of_everything_before_it() -> None:
    assert chained_hash(chained_hash(b"", [1]), [2]) != chained_hash(chained_hash(b"", [3]), [2])
    assert chained_hash(b"", [1, 2]) != chained_hash(b"", [2, 1])


def test_prompt_scores_are_not_taken_from_the_cache() -> None:
    blocks = BlockManager(4, 1)
    one = sequence([1, 2])
    admit(blocks, one)
    compute(blocks, one)
    scored = Sequence(2, [1, 2, 3], 3, 1, SamplingParams(prompt_logprobs=True), seed=0)
    assert blocks.find_prefix(scored)[0] == []


def test_forgetting_the_cache_keeps_what_is_in_use() -> None:
    blocks = BlockManager(4, 1)
    used, gone = sequence([1]), sequence([2])
    for one in (used, gone):
        admit(blocks, one)
        compute(blocks, one)
    blocks.release(gone)
    blocks.forget_cached()
    assert blocks.num_free == 3 and blocks.find_prefix(sequence([1, 5]))[0] == []
    blocks.release(used)
    assert blocks.num_free == 4

"""A runner without a model, for scheduling tests: the next token is a hash of what the block table leads to.

Whoever mixes up blocks, rows, positions or prefixes gets other tokens than `expected_output`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

EMPTY = np.zeros(0, dtype=np.int32)


def next_token(tokens: list[int], vocabulary: int = 50) -> int:
    return zlib.crc32(np.array(tokens, dtype=np.int32).tobytes()) % vocabulary


def expected_output(prompt: list[int], count: int, stop: frozenset[int] = frozenset()) -> list[int]:
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(next_token(tokens))
        if tokens[-1] in stop:
            break
    return tokens[len(prompt) :]


@dataclass
class FakeRow:
    tokens: list[int]
    blocks: list[int] = field(default_factory=list)


@dataclass
class FakeOutput:
    rows: Any
    token_ids: Any
    logprobs: Any
    runner_up_ids: Any
    runner_up_logprobs: Any
    top_ids: list[Any]
    top_logprobs: list[Any]
    prompt_logprobs: list[Any] = field(default_factory=list)


@dataclass
class FakePending:
    output: FakeOutput
    runner: FakeRunner
    waited: bool = False

    def done(self) -> bool:
        return True

    def wait(self) -> FakeOutput:
        if not self.waited:
            self.runner.unread -= 1
        self.waited = True
        return self.output


class FakeRunner:
    def __init__(
        self, num_blocks: int, block_size: int, max_num_seqs: int, budget: int, *, mirror: bool = False
    ) -> None:
        self.mirror = mirror
        self.block_size = block_size
        self.max_num_seqs = max_num_seqs
        self.budget = budget
        self.cells = np.full((num_blocks, block_size), -1, dtype=np.int64)  # which token's keys lie where
        self.rows: dict[int, FakeRow] = {}
        self.steps: list[list[tuple[int, int, int]]] = []
        self.unread = 0

    def add(self, row: int, token_ids: Any, sampling: Any, num_prompt_tokens: int) -> None:
        assert 0 <= row < self.max_num_seqs
        assert row not in self.rows, f"row {row} is taken"
        assert token_ids.dtype == np.int32 and 0 < num_prompt_tokens <= len(token_ids)
        self.rows[row] = FakeRow(token_ids.tolist())

    def remove(self, row: int) -> None:
        del self.rows[row]

    def set_blocks(self, row: int, first: int, block_ids: Any) -> None:
        table = self.rows[row].blocks
        assert first <= len(table)
        table[first:] = block_ids.tolist()

    def launch(self, rows: Any, num_computed: Any, num_tokens: Any, allowed: Any = None) -> FakePending:
        entries = list(zip(rows.tolist(), num_computed.tolist(), num_tokens.tolist(), strict=True))
        assert entries and len({row for row, _, _ in entries}) == len(entries)
        assert sum(count for _, _, count in entries) <= self.budget
        assert self.unread <= int(self.mirror), "a step was launched before the one before was read"
        self.steps.append(entries)
        for row, computed, count in entries:
            self._store(self.rows[row], computed, count)
        sampled = [(row, self._sample(self.rows[row], computed + count)) for row, computed, count in entries]
        self.unread += 1
        return FakePending(_output([pair for pair in sampled if pair[1] is not None]), self)

    def _store(self, row: FakeRow, computed: int, count: int) -> None:
        assert count > 0 and computed + count <= len(row.tokens)
        for position in range(computed, computed + count):
            block = row.blocks[position // self.block_size]
            self.cells[block, position % self.block_size] = row.tokens[position]

    def _sample(self, row: FakeRow, computed: int) -> int | None:
        if computed < len(row.tokens):
            return None
        seen = [int(self.cells[row.blocks[p // self.block_size], p % self.block_size]) for p in range(computed)]
        token = next_token(seen)
        row.tokens.append(token)
        return token


def _output(sampled: list[tuple[int, int | None]]) -> FakeOutput:
    count = len(sampled)
    rows, tokens = (np.array([pair[i] for pair in sampled], dtype=np.int64) for i in (0, 1))
    zeros = np.zeros(count, dtype=np.float32)
    return FakeOutput(rows, tokens, zeros, np.zeros(count, dtype=np.int32), zeros, [EMPTY] * count, [EMPTY] * count)

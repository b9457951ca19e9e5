"""Which tokens are computed in the next step: continuous batching, chunked prefill, preemption by recomputing.

Pure Python over sequences and block numbers; knows nothing of tensors or devices.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from itertools import groupby

from engine.block_manager import BlockManager
from engine.errors import KVCacheTooSmall, RequestError
from engine.sequence import FinishReason, Sequence, State
from engine.waiting_queue import WaitingQueue

MAX_SHARED_PREFILLS = 4  # prompts that share one step's budget though one alone would fill it


@dataclass
class Plan:
    """One step. Rows are removed first, then added; entry i of the lists speaks of `sequences[i]`."""

    removed_rows: list[int] = field(default_factory=list)
    added: list[Sequence] = field(default_factory=list)
    grown: list[tuple[Sequence, int]] = field(default_factory=list)  # and the first new entry of its block table
    sequences: list[Sequence] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    num_computed: list[int] = field(default_factory=list)
    num_tokens: list[int] = field(default_factory=list)
    sampled: list[Sequence] = field(default_factory=list)  # those whose next token comes out of this step
    num_prompt_tokens: int = 0  # of num_tokens in all, those that are no decoding


class Scheduler:
    def __init__(
        self,
        blocks: BlockManager,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        context_length: int,
    ) -> None:
        self.blocks = blocks
        self.max_num_batched_tokens = max_num_batched_tokens
        self.context_length = context_length
        self.waiting = WaitingQueue()
        self.running: list[Sequence] = []  # by falling claim: the last one is preempted first
        self.preemptions = 0
        self._free_rows = list(range(max_num_seqs - 1, -1, -1))
        self._released_rows: list[int] = []

    @property
    def has_work(self) -> bool:
        return bool(self.running) or len(self.waiting) > 0

    def add(self, sequence: Sequence) -> None:
        self.check_fits(sequence)
        self.waiting.add(sequence)

    def check_fits(self, sequence: Sequence) -> None:
        """Refuse what could never run, so that what is accepted always finishes."""
        prompt, wanted = sequence.num_prompt_tokens, sequence.num_prompt_tokens + sequence.max_tokens
        if prompt == 0:
            raise RequestError("the prompt is empty and the model has no begin-of-text token; send at least one token")
        if prompt >= self.context_length:
            raise RequestError(
                f"the prompt has {prompt} tokens, the model's context holds {self.context_length} with at least one "
                f"new token; shorten the prompt to {self.context_length - 1} tokens"
            )
        if wanted > self.context_length:
            raise RequestError(
                f"{prompt} prompt tokens and max_tokens {sequence.max_tokens} exceed the context of "
                f"{self.context_length}; lower max_tokens to {self.context_length - prompt}"
            )
        capacity = self.blocks.num_blocks * self.blocks.block_size
        if wanted - 1 > capacity:  # the last token sampled is never stored
            raise KVCacheTooSmall(
                f"{prompt} prompt tokens and max_tokens {sequence.max_tokens} exceed the KV cache, in which {capacity} "
                "tokens fit; shorten the request or enlarge the cache with --kv-cache-tokens"
            )

    def schedule(self) -> Plan | None:
        """The next step, or None when nothing can be computed now."""
        plan = Plan()
        budget = self._decode(plan, self.max_num_batched_tokens)
        if budget > 0:
            self._admit(plan, budget)
            self._prefill(plan, budget)
        if not plan.sequences:
            return None
        plan.removed_rows, self._released_rows = self._released_rows, []
        return plan

    def _decode(self, plan: Plan, budget: int) -> int:
        """One token for each running sequence that has its prompt behind it. Returns the budget left."""
        block_size, index, running = self.blocks.block_size, 0, self.running
        while index < len(running) and budget > 0:
            sequence = running[index]
            index += 1
            computed, in_flight = sequence.num_computed, sequence.num_in_flight
            total = len(sequence.token_ids) + in_flight
            if total - computed != 1 or total - sequence.num_prompt_tokens >= sequence.max_tokens:
                continue
            if in_flight and sequence.grammar is not None:
                continue  # its last token must be known before the next can be masked
            if computed + 1 > len(sequence.blocks) * block_size and not self._grow(plan, sequence):
                break  # it was the last one, and is preempted itself
            self._plan(plan, sequence, 1)
            budget -= 1
        return budget

    def _grow(self, plan: Plan, sequence: Sequence) -> bool:
        first = len(sequence.blocks)
        while not self.blocks.grow(sequence, sequence.num_computed + 1):
            victim = self.running.pop()
            self._preempt(victim)
            if victim is sequence:
                return False
        plan.grown.append((sequence, first))
        return True

    def _preempt(self, sequence: Sequence) -> None:
        """Give up its place; it comes back later and its tokens, none of them lost, are computed anew."""
        self._vacate(sequence)
        sequence.state = State.WAITING
        sequence.preemptions += 1
        self.preemptions += 1
        self.waiting.put_back(sequence)

    def _vacate(self, sequence: Sequence) -> None:
        self.blocks.release(sequence)
        if sequence.row is not None:
            self._released_rows.append(sequence.row)
            self._free_rows.append(sequence.row)
            sequence.row = None

    def _admit(self, plan: Plan, budget: int) -> None:
        """Take waiting sequences in, as long as their prompts fill the budget or share it with few others."""
        if not self._free_rows or not len(self.waiting):
            return
        pending = [_remaining(sequence) for sequence in self.running if _remaining(sequence) > 1]
        while self._free_rows and (sum(pending) < budget or len(pending) < MAX_SHARED_PREFILLS):
            sequence = self.waiting.peek()
            if sequence is None or not _admissible(sequence) or not self._take_in(plan, sequence):
                return
            pending.append(_remaining(sequence))

    def _take_in(self, plan: Plan, sequence: Sequence) -> bool:
        prefix, hashes = self.blocks.find_prefix(sequence)
        # One spare block for each running sequence: else the newcomer would be preempted at once.
        if not self.blocks.can_admit(sequence, prefix, spare=len(self.running)):
            return False
        self.waiting.pop()
        self.blocks.admit(sequence, prefix, hashes)
        self.blocks.grow(sequence, sequence.num_tokens)
        if not sequence.preemptions:
            sequence.num_cached_tokens = sequence.num_computed
        sequence.state = State.RUNNING
        sequence.row = self._free_rows.pop()
        bisect.insort(self.running, sequence, key=lambda s: s.order)
        plan.added.append(sequence)
        plan.grown.append((sequence, 0))
        return True

    def _prefill(self, plan: Plan, budget: int) -> None:
        """Share the budget among the unfinished prompts, by priority, then evenly: short ones aren't kept waiting."""
        if not plan.added and len(plan.sequences) == len(self.running):
            return  # every one decodes
        # One token left is a decode, planned already; but a newcomer may have only one that isn't cached.
        unfinished = [s for s in self.running if _remaining(s) > 1] + [s for s in plan.added if _remaining(s) == 1]
        unfinished.sort(key=lambda s: s.order)
        for _, group in groupby(unfinished, key=lambda s: s.priority):
            shares = sorted(group, key=_remaining)
            for index, sequence in enumerate(shares):
                share = min(_remaining(sequence), max(1, budget // (len(shares) - index)), budget)
                if share == 0:
                    return
                self._plan(plan, sequence, share)
                plan.num_prompt_tokens += share
                budget -= share

    def _plan(self, plan: Plan, sequence: Sequence, count: int) -> None:
        computed = sequence.num_computed
        plan.sequences.append(sequence)
        plan.rows.append(sequence.row)  # type: ignore[arg-type]  # a running sequence has a row
        plan.num_computed.append(computed)
        plan.num_tokens.append(count)
        sequence.num_computed = computed = computed + count
        if computed == len(sequence.token_ids) + sequence.num_in_flight:
            plan.sampled.append(sequence)
            sequence.num_in_flight += 1

    def commit(self, plan: Plan, token_ids: SequenceOf[int]) -> None:
        """The step's tokens have arrived: append them, finish what stops, share what is computed."""
        for sequence, token in zip(plan.sampled, token_ids, strict=True):
            sequence.num_in_flight -= 1
            if not sequence.finished:
                sequence.token_ids.append(token)
        size = self.blocks.block_size
        for sequence in plan.sequences:
            if sequence.num_computed >= (sequence.num_hashed + 1) * size:
                self.blocks.register(sequence)
        for sequence in plan.sampled:
            if sequence.finished:
                continue
            if sequence.token_ids[-1] in sequence.stop_ids:
                self.finish(sequence, FinishReason.STOP)
            elif len(sequence.token_ids) - sequence.num_prompt_tokens >= sequence.max_tokens:
                self.finish(sequence, FinishReason.LENGTH)

    def finish(self, sequence: Sequence, reason: FinishReason) -> None:
        """Ends a sequence in whatever state it is; a second end is ignored."""
        if sequence.finished:
            return
        state, sequence.state = sequence.state, State.FINISHED
        sequence.finished = True
        sequence.finish_reason = reason
        if state is State.RUNNING:
            self.running.remove(sequence)
            self._vacate(sequence)
        else:
            self.waiting.remove(sequence)


def _remaining(sequence: Sequence) -> int:
    return sequence.num_tokens - sequence.num_computed


def _admissible(sequence: Sequence) -> bool:
    """Its tokens must all be known, and a further choice waits for the first one's prompt, to share it."""
    leader = sequence.leader
    return sequence.num_in_flight == 0 and (leader is None or leader.finished or leader.num_outputs > 0)

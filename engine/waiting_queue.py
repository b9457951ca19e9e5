"""Requests not yet running: by priority, then fair among clients, then by arrival."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from engine.sequence import Sequence, State


class WaitingQueue:
    """Start-time fair queueing: a client's next request starts, in virtual time, when its last one ended.

    So one client's hundred requests don't keep another's single one waiting. Requests without a client share one
    line in order of arrival.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, float, int], Sequence]] = []
        self._virtual_time = 0.0
        self._last_end: dict[str, float] = {}
        self._size = 0
        self._left = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Sequence]:
        return (sequence for _, sequence in sorted(self._heap, key=lambda e: e[0]) if _is_waiting(sequence))

    def add(self, sequence: Sequence) -> None:
        cost = float(sequence.num_prompt_tokens + sequence.max_tokens)
        client = sequence.client or ""
        start = self._virtual_time
        if client:
            start = max(start, self._last_end.get(client, 0.0))
            self._last_end[client] = start + cost
        sequence.order = (sequence.priority, start, sequence.id)
        self._push(sequence)

    def put_back(self, sequence: Sequence) -> None:
        """A preempted sequence keeps the place it had."""
        self._push(sequence)

    def _push(self, sequence: Sequence) -> None:
        heapq.heappush(self._heap, (sequence.order, sequence))
        self._size += 1

    def peek(self) -> Sequence | None:
        while self._heap and not _is_waiting(self._heap[0][1]):
            heapq.heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def pop(self) -> Sequence:
        """The sequence that `peek` showed."""
        _, sequence = heapq.heappop(self._heap)
        self._size -= 1
        self._virtual_time = max(self._virtual_time, sequence.order[1])
        if not self._size:
            self._last_end.clear()
        return sequence

    def remove(self, sequence: Sequence) -> None:
        """The sequence has finished while waiting; its entry is dropped when it comes up."""
        self._size -= 1


def _is_waiting(sequence: Sequence) -> bool:
    return sequence.state is State.WAITING

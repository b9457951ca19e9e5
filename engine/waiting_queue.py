"""Requests not yet running: by priority, then fair among clients, then by arrival."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from engine.sequence import Sequence, State

FEW = 1024  # entries that may lie about though they mean nothing any more


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
        self._many_clients = FEW

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
        self._forget_clients()

    def _forget_clients(self) -> None:
        """Where there were very many, one with nothing waiting counts as new when it comes back."""
        if len(self._last_end) > self._many_clients:
            waiting = {sequence.client for _, sequence in self._heap if _is_waiting(sequence)}
            self._last_end = {name: end for name, end in self._last_end.items() if name in waiting}
            self._many_clients = max(FEW, 2 * len(self._last_end))

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
        """The sequence has finished while waiting; its entry is dropped when it comes up, or when such are many."""
        self._size -= 1
        if len(self._heap) > 2 * self._size + FEW:
            self._heap = [entry for entry in self._heap if _is_waiting(entry[1])]
            heapq.heapify(self._heap)


def _is_waiting(sequence: Sequence) -> bool:
    return sequence.state is State.WAITING

"""The queue keeps nothing of requests and clients that are gone, however long it is never empty."""

from __future__ import annotations

from engine.sampling_params import SamplingParams
from engine.sequence import Sequence, State
from engine.waiting_queue import FEW, WaitingQueue


def request(number: int, *, client: str | None = None, priority: int = 0) -> Sequence:
    return Sequence(number, [1], 1, 1, SamplingParams(max_tokens=1), seed=0, client=client, priority=priority)


def test_clients_that_left_are_forgotten_though_the_queue_is_never_empty() -> None:
    queue = WaitingQueue()
    for number in range(20 * FEW):
        queue.add(request(number, client=f"client {number}"))
        if number >= 3:
            queue.pop()
    assert len(queue) == 3
    assert len(queue._last_end) <= 2 * FEW


def test_ended_requests_behind_urgent_ones_are_dropped() -> None:
    queue = WaitingQueue()
    queue.add(request(0, priority=-1))
    for number in range(1, 20 * FEW):
        sequence = request(number, priority=5)
        queue.add(sequence)
        sequence.state = State.FINISHED
        queue.remove(sequence)
    assert len(queue) == 1 and len(queue._heap) <= 2 * FEW
    first = queue.peek()
    assert first is not None and first.id == 0


def test_a_client_that_comes_back_still_waits_for_its_share() -> None:
    queue = WaitingQueue()
    for number in range(3):
        queue.add(request(number, client="busy"))
    queue.add(request(3, client="new"))
    assert [sequence.id for sequence in queue] == [0, 3, 1, 2]

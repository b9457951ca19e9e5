"""The engine's own thread: takes requests from the server, steps while there is work, hands results back."""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.choice import Delta
from engine.errors import DeviceFailed, EngineError
from engine.llm import LLM, Request
from engine.sequence import FinishReason
from engine.server.metrics import Metrics


class Busy(EngineError):
    """The queue is full. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Draining(Busy):
    """The server is about to stop and takes nothing new."""


@dataclass(eq=False)
class Stream:
    """One accepted request, as the server's handlers see it."""

    request: Request
    deadline: float | None  # monotonic seconds
    queue: asyncio.Queue[Delta] = field(default_factory=asyncio.Queue)
    open_choices: int = 0
    accepted: float = field(default_factory=time.monotonic)
    last_token: dict[int, float] = field(default_factory=dict)  # by choice
    closed: bool = False


class Worker:
    """`submit`, `cancel` and `drain` are called on the server's event loop; everything of the engine runs on the thread."""

    def __init__(self, llm: LLM, metrics: Metrics, *, max_queue: int) -> None:
        self.llm = llm
        self.metrics = metrics
        self.max_queue = max_queue
        self.draining = False
        self.failure: str | None = None
        self.num_open = 0
        self._server: asyncio.AbstractEventLoop | None = None
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._streams: set[Stream] = set()
        self._deadlines: list[tuple[float, int, Stream]] = []
        self._outbox: list[tuple[Stream, Delta]] = []
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self, server: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._thread.start()

    def submit(self, request: Request, deadline: float | None) -> Stream:
        """Accept a request, or say why not. What is accepted ends with a finish reason for each choice."""
        if self.failure is not None:
            raise DeviceFailed(self.failure)
        if self.draining:
            raise Draining("the server is shutting down; send the request to another one", retry_after=5)
        if self.num_open >= self.max_queue + self.llm.config.max_num_seqs:
            self.metrics.rejected.inc()
            raise Busy(f"{self.num_open} requests are open already; try again later", retry_after=self._retry_after())
        self.num_open += 1
        stream = Stream(request, deadline, open_choices=len(request.sequences))
        self._post(lambda: self._begin(stream))
        return stream

    def cancel(self, stream: Stream) -> None:
        """The client is gone: nobody reads on."""
        if not stream.closed:
            self._post(lambda: self._end(stream, FinishReason.ABORT))

    def drain(self) -> None:
        self.draining = True

    def fail_all(self, message: str) -> None:
        self._post(lambda: [self._end(stream, FinishReason.ERROR, message) for stream in list(self._streams)] and None)

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _retry_after(self) -> int:
        """Seconds until a place should be free, from the speed so far."""
        mean = self.metrics.mean_request_seconds() or 1.0
        return max(1, min(120, round(mean * self.max_queue / self.llm.config.max_num_seqs)))

    def _post(self, action: Callable[[], None]) -> None:
        with self._wake:
            self._inbox.append(action)
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._inbox or self._stopping or self.llm.loop.has_work):
                    self._wake.wait()
                if self._stopping:
                    return
            while self._inbox:
                self._inbox.popleft()()
            self._end_overdue()
            self._step()
            self._deliver()

    def _step(self) -> None:
        if not self.llm.loop.has_work:
            return
        try:
            self.llm.loop.step()
        except Exception as error:  # whatever it was, every client is told and none waits for ever
            self.failure = str(error) if isinstance(error, EngineError) else f"the engine failed: {error!r}"
            for stream in list(self._streams):
                self._end(stream, FinishReason.ERROR, self.failure)

    def _begin(self, stream: Stream) -> None:
        self._streams.add(stream)
        if self.failure is not None:
            self._end(stream, FinishReason.ERROR, self.failure)
            return
        if stream.deadline is not None:
            heapq.heappush(self._deadlines, (stream.deadline, id(stream), stream))
        self.llm.submit(stream.request, lambda delta: self._outbox.append((stream, delta)))

    def _end(self, stream: Stream, reason: FinishReason, message: str | None = None) -> None:
        if stream not in self._streams:
            return
        self.llm.abort(stream.request, reason, message)
        for completion in stream.request.output.completions:  # a failed engine may not know the sequence any more
            if completion.finish_reason is None:
                completion.finish_reason = reason
                self._outbox.append((stream, Delta(completion.index, "", [], reason, message)))

    def _end_overdue(self) -> None:
        now = time.monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            stream = heapq.heappop(self._deadlines)[2]
            self._end(stream, FinishReason.DEADLINE, "the deadline has passed")

    def _deliver(self) -> None:
        if not self._outbox:
            return
        outbox, self._outbox = self._outbox, []
        for stream, delta in outbox:
            self.metrics.note_delta(stream, delta)
            if delta.finish_reason is not None:
                stream.open_choices -= 1
                if stream.open_choices == 0:
                    stream.request.note_costs()
                    self._streams.discard(stream)
        assert self._server is not None
        self._server.call_soon_threadsafe(self._receive, outbox)

    def _receive(self, outbox: list[tuple[Stream, Delta]]) -> None:
        """On the event loop again."""
        for stream, delta in outbox:
            stream.queue.put_nowait(delta)
            if delta.finish_reason is not None and all(c.finish_reason for c in stream.request.output.completions):
                if not stream.closed:
                    self.num_open -= 1
                stream.closed = True

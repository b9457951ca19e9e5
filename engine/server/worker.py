"""The engine's own thread: takes requests from the server, steps while there is work, hands results back."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from engine.choice import Delta
from engine.errors import DeviceFailed, EngineError, RequestError
from engine.llm import LLM
from engine.sequence import FinishReason
from engine.server.metrics import Metrics
from engine.server.stream import Stream

LOOK_EVERY = 0.01  # seconds, for deadlines


class Busy(EngineError):
    """The queue is full. `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Draining(Busy):
    """The server is about to stop and takes nothing new."""


class Worker:
    """The public methods are called on the server's event loop; everything of the engine runs on the thread."""

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
        self._next_look = 0.0
        self._outbox: list[tuple[Stream, Delta]] = []
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self, server: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._thread.start()

    def submit(self, streams: list[Stream]) -> None:
        """Accept all of them, or none and say why not. What is accepted ends with a finish reason for each choice."""
        wanted = sum(len(stream.request.sequences) for stream in streams)
        capacity = self.max_queue + self.llm.config.max_num_seqs
        if self.failure is not None:
            raise DeviceFailed(self.failure)
        if self.draining:
            raise Draining("the server is shutting down; send the request to another one", retry_after=5)
        if wanted > capacity:
            raise RequestError(f"{wanted} choices in one request; this server takes at most {capacity}")
        if self.num_open + wanted > capacity:
            self.metrics.rejected.inc()
            raise Busy(f"{self.num_open} requests are open already; try again later", retry_after=self._retry_after())
        self.num_open += wanted
        for stream in streams:
            stream.open_choices = len(stream.request.sequences)
            self._post(partial(self._begin, stream))

    def cancel(self, stream: Stream) -> None:
        """The client is gone: nobody reads on."""
        if not stream.closed:
            self._post(partial(self._end, stream, FinishReason.ABORT))

    def drain(self) -> None:
        self.draining = True

    def fail_all(self, message: str) -> None:
        self._post(partial(self._end_all, message))

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
            self._end_all(self.failure)

    def _end_all(self, message: str) -> None:
        for stream in list(self._streams):
            self._end(stream, FinishReason.ERROR, message)

    def _begin(self, stream: Stream) -> None:
        self._streams.add(stream)
        if self.failure is not None:
            self._end(stream, FinishReason.ERROR, self.failure)
            return
        self.llm.submit(stream.request, partial(self._listen, stream))

    def _listen(self, stream: Stream, delta: Delta) -> None:
        self._outbox.append((stream, delta))

    def _end(self, stream: Stream, reason: FinishReason, message: str | None = None) -> None:
        if stream not in self._streams:
            return
        self.llm.abort(stream.request, reason, message)
        for completion in stream.request.output.completions:  # a failed engine may not know the sequence any more
            if completion.finish_reason is None:
                completion.finish_reason = reason
                self._outbox.append((stream, Delta(completion.index, "", [], reason, message)))

    def _end_overdue(self) -> None:
        """Looks through the open streams now and then; a heap would keep the finished ones until their deadlines."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_EVERY
        for stream in [s for s in self._streams if s.deadline is not None and s.deadline <= now]:
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
        wanted = [pair for pair in outbox if pair[0].every_token or pair[1].finish_reason is not None]
        if wanted and self._server is not None:
            with contextlib.suppress(RuntimeError):  # the server's loop is closed already
                self._server.call_soon_threadsafe(self._receive, wanted)

    def _receive(self, pairs: list[tuple[Stream, Delta]]) -> None:
        """On the event loop again."""
        for stream, delta in pairs:
            if delta.finish_reason is not None:
                self.num_open -= 1
                stream.closed = stream.open_choices == 0
            stream.queue.put_nowait((stream, delta))

"""One call of a generating endpoint: hands its requests to the worker, answers whole or as a stream of events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from engine.choice import Delta
from engine.llm import Request
from engine.sequence import FinishReason
from engine.server import problems
from engine.server.answers import Shape
from engine.server.stream import Stream
from engine.server.worker import Worker

Queue = asyncio.Queue[tuple[Stream, Delta] | None]


class Call:
    """`deltas` puts a None into the queue when the client goes away; whatever is open is then cancelled."""

    def __init__(
        self, worker: Worker, requests: Sequence[Request], *, every_token: bool, timeout: float | None
    ) -> None:
        self.requests = requests
        self.gone = False  # the client went away
        self._worker = worker
        self._queue: Queue = asyncio.Queue()
        deadline = time.monotonic() + timeout if timeout else None
        self._streams = [Stream(request, self._queue, every_token, deadline) for request in requests]
        worker.submit(self._streams)

    async def answer(self, http: HttpRequest, shape: Shape) -> Response:
        failed: Delta | None = None
        async with aclosing(self._deltas(http.receive)) as deltas:
            async for _, delta in deltas:
                if delta.finish_reason in problems.ENDINGS:
                    failed = failed or delta
        if self.gone:
            return Response(status_code=499)
        if failed is not None and failed.finish_reason is not None:
            return problems.of_ending(failed.finish_reason, failed.error)
        return JSONResponse(shape.whole(self.requests))

    def stream(self, http: HttpRequest, shape: Shape, *, include_usage: bool, write_timeout: float) -> Response:
        events = self._events(http.receive, shape, include_usage)
        return EventStream(events, write_timeout)

    async def _events(self, receive: Receive, shape: Shape, include_usage: bool) -> AsyncGenerator[bytes, None]:
        first, count = {}, 0
        for stream in self._streams:
            first[id(stream)] = count
            count += len(stream.request.sequences)
        for index in range(count):
            opening = shape.opening(index)
            if opening is not None:
                yield _event(opening)
        async with aclosing(self._deltas(receive)) as deltas:
            async for stream, delta in deltas:
                if delta.finish_reason in problems.ENDINGS:
                    yield _failure(delta)
                    return
                chunk = shape.chunk(first[id(stream)] + delta.index, delta)
                if chunk is not None:
                    yield _event(chunk)
        if self.gone:
            return
        if include_usage:
            yield _event(shape.closing(self.requests))
        yield b"data: [DONE]\n\n"

    async def _deltas(self, receive: Receive) -> AsyncGenerator[tuple[Stream, Delta], None]:
        open_choices = sum(len(request.sequences) for request in self.requests)
        watch = asyncio.create_task(self._watch(receive))
        try:
            while open_choices:
                pair = await self._queue.get()
                if pair is None:
                    self.gone = True
                    return
                open_choices -= pair[1].finish_reason is not None
                yield pair
        finally:
            watch.cancel()
            for stream in self._streams:
                self._worker.cancel(stream)

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._queue.put_nowait(None)


class EventStream(Response):
    """Server-sent events. A reader that takes nothing for `write_timeout` seconds is dropped."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None], write_timeout: float) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._events = events
        self._write_timeout = write_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def timed(message: dict[str, Any]) -> None:
            async with asyncio.timeout(self._write_timeout):
                await send(message)

        async with aclosing(self._events) as events:
            with suppress(TimeoutError, OSError):  # the reader is stuck, or gone
                await timed({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for event in events:
                    await timed({"type": "http.response.body", "body": event, "more_body": True})
                await timed({"type": "http.response.body", "body": b"", "more_body": False})


def _failure(delta: Delta) -> bytes:
    reason = FinishReason(str(delta.finish_reason))
    _, kind, code = problems.ENDINGS[reason]
    return _event(problems.body(delta.error or f"the request ended: {reason}", kind, code))


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"

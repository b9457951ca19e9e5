"""Runs the application on uvicorn, with a graceful end: SIGTERM stops taking requests and finishes those accepted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from engine.errors import ArgumentsError
from engine.llm import LLM
from engine.server.app import Settings, create
from engine.server.worker import Worker

GRACE = 5.0  # seconds for clients to read their last bytes once everything is computed


class DrainingServer(uvicorn.Server):
    """The first signal drains; a second one ends at once."""

    def __init__(self, config: uvicorn.Config, worker: Worker, drain_timeout: float) -> None:
        super().__init__(config)
        self._worker = worker
        self._drain_timeout = drain_timeout
        self._drainer: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not the base class's: it raises the signal again at the end, and a drained server has ended well.
        self.force_exit = self._worker.draining
        self.should_exit = True
        self._worker.drain()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._drainer = asyncio.create_task(self._fail_late_ones())
        await super().shutdown(sockets)
        self._drainer.cancel()

    async def _fail_late_ones(self) -> None:
        """What hasn't finished in time gets a clear error, so that no client waits for ever."""
        await asyncio.sleep(self._drain_timeout)
        self._worker.fail_all("the server is shutting down and could not finish this request in time")


def run(
    llm: LLM, settings: Settings, *, host: str, port: int, drain_timeout: float, ready: Callable[[str], None]
) -> int:
    listener = _listen(host, port)
    app = create(llm, settings)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=int(drain_timeout + GRACE),
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=1 << 16,
        lifespan="on",
    )
    server = DrainingServer(config, app.state.server.worker, drain_timeout)
    address, bound = listener.getsockname()[:2]
    ready(f"http://[{address}]:{bound}" if ":" in address else f"http://{address}:{bound}")
    server.run(sockets=[listener])
    return 0 if app.state.server.worker.failure is None else 3


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
        return listener
    except OSError as error:
        raise ArgumentsError(
            f"can't listen on {host}:{port}: {error.strerror or error}; choose another --port"
        ) from None

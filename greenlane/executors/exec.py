"""One command inside a running container, its two streams live, with a time limit and a way to stop."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from functools import partial
from typing import Any

from greenlane.executors import Exit, OnLine, Stream
from greenlane.executors.lines import Lines

POLL_S = 0.1
ASK_AGAIN_S = 0.5  # how often a silent command is asked whether it still runs
AFTERGLOW_S = 0.5  # how long output is waited for after the shell has ended: background processes hold the stream
_HEADER = struct.Struct(">BxxxL")  # stream, length
_STREAMS = {1: Stream.OUT, 2: Stream.ERR}


class Session:
    def __init__(self, client: Any, container: str, cancel: threading.Event) -> None:
        self._client = client
        self._container = container
        self._cancel = cancel

    def run(self, script: str, cwd: str, environment: dict[str, str], timeout_s: float | None, on_line: OnLine) -> Exit:
        # The command waits for a first line of input. Without that its output may arrive together with the daemon's
        # answer, in a buffer of the HTTP library that nobody reads.
        command = ["/bin/sh", "-ec", f"read -r _\nexec </dev/null\n{script}"]
        created = self._client.exec_create(self._container, command, stdin=True, environment=environment, workdir=cwd)[
            "Id"
        ]
        stream = self._client.exec_start(created, socket=True)
        wire: socket.socket = getattr(stream, "_sock", stream)
        try:
            wire.sendall(b"\n")
            timed_out = self._pump(wire, created, timeout_s, on_line)
        finally:
            with contextlib.suppress(OSError):
                wire.close()
            stream.close()
        if timed_out or self._cancel.is_set():
            return Exit(137, timed_out=timed_out)
        return Exit(self._code(created))

    def _pump(self, wire: socket.socket, created: str, timeout_s: float | None, on_line: OnLine) -> bool:
        """Hands on lines until the stream ends; True when time ran out."""
        demux = Demux(on_line)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        asked = time.monotonic()
        silent_until: float | None = None
        while not self._cancel.is_set():
            now = time.monotonic()
            if deadline is not None and now > deadline:
                return True
            if silent_until is not None and now > silent_until:
                break
            if select.select([wire], [], [], POLL_S)[0]:
                data = wire.recv(65536)
                if not data:
                    break
                demux.feed(data)
            elif silent_until is None and now - asked > ASK_AGAIN_S:
                asked = now
                if not self._client.exec_inspect(created)["Running"]:
                    silent_until = now + AFTERGLOW_S
        demux.end()
        return False

    def _code(self, created: str) -> int:
        """The exit code; the daemon may learn of the end a moment after the stream has closed."""
        while not self._cancel.is_set():
            state = self._client.exec_inspect(created)
            if not state["Running"]:
                return 255 if state["ExitCode"] is None else int(state["ExitCode"])
            time.sleep(POLL_S / 5)
        return 137


class Demux:
    """The daemon's framing of two streams on one wire."""

    def __init__(self, on_line: OnLine) -> None:
        self._lines = {number: Lines(partial(on_line, stream)) for number, stream in _STREAMS.items()}
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            number, length = _HEADER.unpack_from(self._buffer)
            if len(self._buffer) < _HEADER.size + length:
                return
            payload = bytes(self._buffer[_HEADER.size : _HEADER.size + length])
            del self._buffer[: _HEADER.size + length]
            if number in self._lines:
                self._lines[number].feed(payload)

    def end(self) -> None:
        for lines in self._lines.values():
            lines.end()

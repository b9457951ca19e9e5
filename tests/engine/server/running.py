"""A server in a process of its own, and plain HTTP requests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[3]


@dataclass
class Running:
    process: subprocess.Popen[str]
    url: str

    def connect(self, timeout: float = 600) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        return http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=timeout)

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON (or text) and headers."""
        connection = self.connect()
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, raw, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        content = response.read().decode()
        connection.close()
        found = json.loads(content) if "json" in response.headers["content-type"] else content
        return response.status, found, dict(response.headers.items())

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        status, found, _ = self.request("POST", path, body, headers)
        return status, found

    def get(self, path: str) -> tuple[int, Any]:
        status, found, _ = self.request("GET", path)
        return status, found

    def metric(self, name: str) -> float:
        _, text = self.get("/metrics")
        return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(f"{name} ")))

    def wait_idle(self, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while self.metric("engine_sequences_running") or self.metric("engine_sequences_waiting"):
            assert time.monotonic() < until, "the server does not become idle"
            time.sleep(0.05)

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def serving(model: Path | str, *arguments: str, module: str = "engine") -> Iterator[Running]:
    command = [sys.executable, "-m", module, "serve", "--model", str(model), "--port", "0", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert " on http" in line, line + process.stderr.read()
    try:
        yield Running(process, line.split()[-1])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()

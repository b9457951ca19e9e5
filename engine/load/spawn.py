"""A server of one's own for the length of a measurement: started on a free port, stopped whatever happens."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError

ANNOUNCES = " on http"
STOP_S = 30.0


@dataclass(frozen=True)
class Spawned:
    url: str
    pid: int

    def peak_memory_bytes(self) -> int | None:
        """The most that the server has had resident; None where the kernel does not say."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return None
        peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")), None)
        return None if peak is None else 1024 * int(peak)


@contextmanager
def spawned(arguments: str) -> Iterator[Spawned]:
    """`engine serve` with these further arguments, once it listens."""
    command = [sys.executable, "-m", "engine", "serve", "--port", "0", *shlex.split(arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            if ANNOUNCES not in line:
                process.kill()
                raise EngineError(f"the server did not start: {(line + process.stderr.read()).strip()[-300:]}")
            yield Spawned(line.split()[-1], process.pid)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()

"""The server with a planted leak: something of every request is kept. Run: python -m tests.engine.server.leaky serve"""

from __future__ import annotations

import os
import sys

from engine.cli import main
from engine.server.stream import Stream
from engine.server.worker import Worker

KEPT = 20_000  # bytes of each request
_kept: list[bytes] = []
_begin = Worker._begin


def keep(worker: Worker, stream: Stream) -> None:
    _kept.append(os.urandom(KEPT))
    _begin(worker, stream)


if __name__ == "__main__":
    Worker._begin = keep  # type: ignore[method-assign]
    sys.exit(main())

"""Ctrl-C and SIGTERM set an event that every executor watches, so that lanes end in order and leave nothing behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from greenlane.errors import GreenlaneError


class Interrupted(GreenlaneError):
    """Somebody stopped the run. The shell's code for SIGINT, which no verdict uses."""

    exit_code = 130


@contextmanager
def cancelled_by_signals() -> Iterator[threading.Event]:
    cancel = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        cancel.set()

    if threading.current_thread() is not threading.main_thread():
        yield cancel
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Watches a server's resident memory, and tells growth from warm-up."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.engine.server.running import Running

EVERY = 0.2  # seconds
# What lists, threads and the allocator's free memory move by while nothing leaks.
SLACK = 8 << 20  # bytes


@dataclass
class Watch:
    """Resident bytes, in order."""

    samples: list[int] = field(default_factory=list)

    @property
    def growth(self) -> int:
        return growth(self.samples)

    def check(self) -> None:
        assert len(self.samples) >= 30, "too few samples to judge"
        assert self.growth <= SLACK, f"{self.growth / 1e6:.1f} MB more in the last third than in the second"

    def __str__(self) -> str:
        thirds = [max(part) / 1e6 for part in _thirds(self.samples)]
        return f"peaks by thirds {', '.join(f'{peak:.1f}' for peak in thirds)} MB"


def growth(samples: Sequence[int]) -> int:
    """By how much the peak of the last third is above that of the second. The first third is warm-up.

    >>> growth([1, 5, 9, 9, 8, 9, 9, 9, 9]), growth([1, 2, 3, 4, 5, 6, 7, 8, 9])
    (0, 3)
    """
    _, second, last = _thirds(samples)
    return max(last) - max(second)


def _thirds(samples: Sequence[int]) -> list[Sequence[int]]:
    third = len(samples) // 3
    return [samples[:third], samples[third : 2 * third], samples[2 * third :]]


@contextlib.contextmanager
def watching(server: Running) -> Iterator[Watch]:
    watch, done = Watch(), threading.Event()

    def look() -> None:
        while not done.wait(EVERY):
            watch.samples.append(server.resident_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watch
    finally:
        done.set()
        thread.join()

"""What a gate is given: a way to run programs inside its lane, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from greenlane.matrix.model import Lane, Stage


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program inside the lane ended."""

    code: int
    stdout: str
    stderr: str
    timed_out: bool = False


class Program(Protocol):
    """Runs a shell command inside the lane, in `{artifacts}`; the lane's placeholders are filled in."""

    def __call__(
        self, command: str, *, env: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> Ran: ...


@dataclass(frozen=True)
class GateContext:
    lane: Lane
    stage: Stage
    source: Path  # the tree, on the host: golden files are read here
    artifacts: Path  # on the host: what a gate leaves for a reader
    emulated: bool = False
    base: Callable[[], Program] | None = None  # the base's build in the same image; built when first called
    log: Callable[[str], None] = field(default=lambda line: None)

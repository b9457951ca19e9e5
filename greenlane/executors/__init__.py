"""Where a lane's commands run. One module per kind of place, each with a class that satisfies `Executor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class Stream(StrEnum):
    OUT = "stdout"
    ERR = "stderr"


OnLine = Callable[[Stream, str], None]


@dataclass(frozen=True, slots=True)
class Folders:
    """A lane's folders, as one side sees them: greenlane on the host, or the commands inside the lane."""

    source: Path
    build: Path
    prefix: Path
    artifacts: Path
    env: Path
    home: Path
    temporary: Path
    ccache: Path


@dataclass(frozen=True, slots=True)
class Command:
    """One shell command; `cwd` is a path inside the lane."""

    script: str
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    setup: bool = False  # may use the network and the host's package-index settings


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended. `lost` says why the place it ran in went away beneath it."""

    code: int
    timed_out: bool = False
    out_of_memory: bool = False
    lost: str | None = None


class Executor(Protocol):
    name: str
    inside: Folders
    python: str  # the interpreter that the lane's commands use

    def start(self) -> None:
        """Makes the place ready; EnvironmentMissing says what the machine lacks."""

    def run(self, command: Command, on_line: OnLine) -> Exit: ...

    def close(self) -> None:
        """Leaves nothing running. May be called twice, and after a failed start."""

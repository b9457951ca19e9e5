"""`{source}`, `{build}` and the others in a command of the matrix."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from greenlane.errors import MatrixError
from greenlane.executors import Folders
from greenlane.matrix.model import Lane

NAMES = ("source", "build", "prefix", "artifacts", "env", "python", "jobs", "arch", "archs", "cmake_defines")
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")  # `${name}` is the shell's


@dataclass(frozen=True, slots=True)
class Placeholders:
    lane: Lane
    inside: Folders
    python: str
    jobs: int

    def fill(self, command: str) -> str:
        """The command with every known placeholder replaced; other braces are the shell's own."""
        return _PLACEHOLDER.sub(lambda match: self._value(match[1], match[0]), command)

    def _value(self, name: str, written: str) -> str:
        if name not in NAMES:
            return written
        if name == "cmake_defines":
            return " ".join(shlex.quote(f"-D{key}={self.fill(value)}") for key, value in self.lane.defines.items())
        if name == "arch":
            return self._arch()
        if name == "archs":
            return ";".join(self.lane.archs)
        if name in ("python", "jobs"):
            return str(getattr(self, name))
        return str(getattr(self.inside, name))

    def _arch(self) -> str:
        if self.lane.arch is None:
            raise MatrixError(f"lane {self.lane.id}: a command uses {{arch}}, but the lane has no architecture")
        return self.lane.arch

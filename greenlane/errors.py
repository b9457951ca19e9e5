"""Every way to fail: a class and an exit code each. A message says what, where and what to do next."""

from __future__ import annotations


class GreenlaneError(Exception):
    """What the command line turns into one line on stderr and an exit code; never a traceback."""

    exit_code = 70


class LaneRed(GreenlaneError):
    """A lane or a finding is red."""

    exit_code = 1


class MatrixError(GreenlaneError):
    """A mistake in the matrix or in the arguments. `problems` holds one `file:line:column: ...` line each."""

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class EnvironmentMissing(GreenlaneError):
    """The machine could not run what was asked for: no daemon, no compiler, no disk."""

    exit_code = 3


class EvidenceMissing(GreenlaneError):
    """Nothing is red, but a lane did not reach the evidence that it requires."""

    exit_code = 4

"""Runs a gate's command inside the lane and says, in one line with the log's tail, why it failed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from greenlane.gates.contract import Program, Ran
from greenlane.record.model import Outcome

TAIL_LINES = 12


class Failed(Exception):
    """A gate's own end: red, or nothing measured."""

    def __init__(self, outcome: Outcome, reason: str, tail: str = "") -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.tail = tail


def filled(command: str, values: Mapping[str, str]) -> str:
    """Puts values where the command says `{name}`; other braces stay, they belong to the lane or to the shell."""
    pieces = command.split("{")
    text = pieces[0]
    for piece in pieces[1:]:
        name, closed, rest = piece.partition("}")
        text += values[name] + rest if closed and name in values else "{" + piece
    return text


def ids(token_ids: Sequence[int]) -> str:
    return ",".join(map(str, token_ids))


def quoted(text: str) -> str:
    """Quoted for the shell; braces are split, so that the lane takes nothing in a prompt for a placeholder."""
    return shlex.quote(text).replace("{", "{''")


def run(program: Program, command: str, who: str, *, env: Mapping[str, str], timeout_s: float) -> Ran:
    """What the command printed; a crash or a timeout is red."""
    ran = program(command, env=env, timeout_s=timeout_s)
    if ran.timed_out:
        raise Failed(Outcome.FAIL, f"{who} did not end within {timeout_s:g} s", tail(ran))
    if ran.code != 0:
        raise Failed(Outcome.FAIL, f"{who} ended with {ending(ran.code)}: {last_line(ran)}", tail(ran))
    return ran


def ending(code: int) -> str:
    if code < 0 or 128 < code < 160:
        return f"signal {-code if code < 0 else code - 128}"
    return f"exit code {code}"


def tail(ran: Ran) -> str:
    text = ran.stderr if ran.stderr.strip() else ran.stdout
    return "\n".join(line[:400] for line in text.strip().splitlines()[-TAIL_LINES:])


def last_line(ran: Ran) -> str:
    lines = tail(ran).splitlines()
    return lines[-1].strip() if lines else "it printed nothing"

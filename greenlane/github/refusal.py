"""What GitHub's refusals mean, in one line each that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greenlane.errors import EnvironmentMissing
from greenlane.report.markdown import plain

SHOWN = 160  # characters of what a server said


class Refused(EnvironmentMissing):
    """GitHub answered, and the answer was no."""

    def __init__(self, message: str, status: int, said: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.said = said


class TooLong(Refused):
    """The text is longer than GitHub takes."""


class Unclear(EnvironmentMissing):
    """A write was sent and no answer came: it may have happened or not."""


def refused(status: int, data: Any, what: str, host: str) -> Refused:
    """The error for an answer; `what` names what was asked for, such as "read pull request #3"."""
    said = _said(data)
    message = f"{host} refuses to {what} ({status}{f': {said}' if said else ''}); {_advice(status, said)}"
    kind = TooLong if status == 422 and "too long" in said.lower() else Refused
    return kind(message, status, said)


def _said(data: Any) -> str:
    """The server's own message and the first of its errors."""
    if not isinstance(data, Mapping):
        return plain(data, SHOWN) if isinstance(data, str) else ""
    parts = [str(data.get("message") or "")]
    errors = data.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    if isinstance(first, Mapping):
        parts.append(" ".join(str(first[key]) for key in ("field", "code", "message") if first.get(key)))
    elif isinstance(first, str):
        parts.append(first)
    return plain(": ".join(part for part in parts if part), SHOWN)


def _advice(status: int, said: str) -> str:
    if status == 401:
        return "the token of GITHUB_TOKEN or GH_TOKEN is wrong or has expired: make a new one"
    if status == 403 and "integration" in said.lower():
        return (
            "the job's token lacks the right: give it `permissions: {pull-requests: write, checks: write}`; "
            "a fork's run never has it, and greenlane-comment.yml comments in its place"
        )
    if status == 403:
        return "the token lacks the right, or the organization has not approved it: see docs/ci.md"
    if status in {404, 410}:
        return "check the repository and the number, and that the token may read the repository"
    if status == 422:
        return "greenlane sent what this GitHub does not take: please report it with this line"
    return "try again later, and see the status page of this GitHub"

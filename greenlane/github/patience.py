"""Waits as long as GitHub asks, within one budget per command, and repeats only what may be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import requests
from github import GithubException

from greenlane.errors import EnvironmentMissing
from greenlane.github.account import Account
from greenlane.github.refusal import Unclear, refused
from greenlane.report.markdown import plain

Answer = TypeVar("Answer")
SECONDARY_S = 60.0  # GitHub asks for a minute where a secondary limit names no time
# What PyGithub raises for addresses of another host or scheme, and for answers of another shape than GitHub's.
NO_GITHUB = (AssertionError, RuntimeError, ValueError, AttributeError, TypeError, LookupError)
RATE_LIMITED = ("rate limit", "please wait a few minutes", "abuse detection")


@dataclass
class Patience:
    """All waits of one command together stay below `budget_s`."""

    account: Account
    budget_s: float = 180.0
    between_writes_s: float = 0.5
    attempts: int = 5  # for a server that fails or can't be reached
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time  # seconds since the epoch
    waited_s: float = field(default=0.0, init=False)

    def call(self, what: str, request: Callable[[], Answer], *, repeatable: bool = True) -> Answer:
        """The request's answer. One that is not repeatable is sent again only when GitHub has surely not acted on it.

        Raises Refused, Unclear or EnvironmentMissing, each of one line.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return request()
            except GithubException as error:
                self._after_answer(what, error, attempt, repeatable)
            except requests.RequestException as error:
                self._after_silence(what, error, attempt, repeatable)
            except NO_GITHUB as error:
                reason = self._shown(error)
                raise EnvironmentMissing(
                    f"{self.account.host} does not answer as GitHub does ({reason}); check GITHUB_API_URL and any proxy"
                ) from None
        raise AssertionError("the last attempt returns or raises")

    def _after_answer(self, what: str, error: GithubException, attempt: int, repeatable: bool) -> None:
        headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
        limited = self._limited(error.status, error.data, headers, attempt)
        if limited is not None:
            self._wait(limited, what, "its rate limit is used up")
        elif error.status >= 500 and repeatable and attempt < self.attempts:
            self._wait(2.0 ** (attempt - 1), what, f"it answers {error.status}")
        elif error.status >= 500 and not repeatable:
            raise Unclear(f"{self.account.host} answered {error.status} to: {what}; it may be done or not") from None
        else:
            answer = refused(error.status, error.data, what, self.account.host)
            answer.args = (self.account.masked(str(answer)),)
            raise answer from None

    def _after_silence(self, what: str, error: requests.RequestException, attempt: int, repeatable: bool) -> None:
        reason = self._shown(error)
        if not repeatable and not _never_sent(error):
            raise Unclear(f"{self.account.host} gave no answer to: {what} ({reason}); it may be done or not") from None
        if attempt == self.attempts:
            raise EnvironmentMissing(
                f"{self.account.host} can't be reached ({reason}); check the network, a proxy, and GITHUB_API_URL"
            ) from None
        self._wait(2.0 ** (attempt - 1), what, "it can't be reached")

    def _limited(self, status: int, data: Any, headers: Mapping[str, str], attempt: int) -> float | None:
        """Seconds until the limit is lifted, or None where the answer is not about a limit."""
        if status not in {403, 429}:
            return None
        if (after := headers.get("retry-after", "")).isdigit():
            return float(after)
        if headers.get("x-ratelimit-remaining") == "0" and (reset := headers.get("x-ratelimit-reset", "")).isdigit():
            return max(0.0, float(reset) - self.now()) + 1.0
        message = str(data.get("message", "")).lower() if isinstance(data, Mapping) else ""
        if status == 429 or any(words in message for words in RATE_LIMITED):
            return float(SECONDARY_S * 2 ** (attempt - 1))
        return None

    def _wait(self, seconds: float, what: str, why: str) -> None:
        if self.waited_s + seconds > self.budget_s:
            raise EnvironmentMissing(
                f"{self.account.host} can't {what} now: {why}, and {seconds:.0f} s more is longer than greenlane waits "
                f"({self.budget_s:.0f} s in all); run it again after {self._moment(seconds)} UTC"
            ) from None
        self.waited_s += seconds
        self.sleep(seconds)

    def _moment(self, seconds: float) -> str:
        try:
            return datetime.fromtimestamp(self.now() + seconds, UTC).strftime("%H:%M")
        except (OverflowError, ValueError, OSError):
            return "the end of the century,"

    def _shown(self, error: Exception) -> str:
        return plain(self.account.masked(str(error)), 160)


def _never_sent(error: requests.RequestException) -> bool:
    """No connection was made, so nothing can have been written."""
    reason = str(error)
    return isinstance(error, requests.ConnectTimeout) or any(
        words in reason for words in ("Connection refused", "Name or service not known", "NameResolutionError")
    )

"""The fake GitHub, a connection to it that never really waits, and a scratch repository with a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

pytest.importorskip("github", reason="PyGithub is not installed")

from greenlane.github.account import Account
from greenlane.github.forge import Forge, connect
from greenlane.github.patience import Patience
from tests.github.fake import TOKEN, GitHub, serving


@dataclass
class Clock:
    """Time that passes by waiting only."""

    time: float = 1_800_000_000.0
    waits: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def now(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def github() -> Iterator[GitHub]:
    with serving(GitHub()) as served:
        yield served


@pytest.fixture
def forge(github: GitHub, clock: Clock) -> Forge:
    account = Account(github.url, TOKEN)
    return connect(account, "o/r", Patience(account, between_writes_s=0, sleep=clock.sleep, now=clock.now))


@pytest.fixture
def environment(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A process's environment without anything of the machine that runs the tests."""
    names = ("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_API_URL", "GITHUB_ACTIONS", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH",
             "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")  # fmt: skip

    def set_to(**values: str) -> None:
        for name in names:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    set_to(GITHUB_TOKEN=TOKEN, GITHUB_API_URL=github.url, GITHUB_ACTIONS="true")
    return set_to

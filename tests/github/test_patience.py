"""GitHub's limits are waited for, within a budget; its refusals become one line that says what to do."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.github import account as accounts
from greenlane.github.account import Account
from greenlane.github.forge import Forge, connect
from greenlane.github.patience import Patience
from greenlane.github.refusal import Refused, Unclear
from tests.github.conftest import Clock
from tests.github.fake import TOKEN, GitHub

LIST = "GET /repos/o/r/issues/3/comments"
POST = "POST /repos/o/r/issues/3/comments"


def limited(**headers: str) -> tuple[int, dict[str, str], Any]:
    return 403, headers, {"message": "API rate limit exceeded for installation ID 1."}


def test_a_used_up_limit_is_waited_for_until_its_reset(github: GitHub, forge: Forge, clock: Clock) -> None:
    reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(clock.time) + 40)}
    github.faults.append((LIST, limited(**reset)))
    assert forge.comments(3) == []
    assert clock.waits == [41.0]


@pytest.mark.parametrize("status", [403, 429])
def test_retry_after_is_obeyed(status: int, github: GitHub, forge: Forge, clock: Clock) -> None:
    github.faults.append(
        (POST, (status, {"Retry-After": "17"}, {"message": "You have exceeded a secondary rate limit."}))
    )
    forge.create_comment(3, "text")
    assert clock.waits == [17.0]
    assert len(github.bodies(3)) == 1


def test_a_secondary_limit_without_a_time_is_waited_for_a_minute(github: GitHub, forge: Forge, clock: Clock) -> None:
    github.faults.append((POST, (403, {}, {"message": "You have exceeded a secondary rate limit. Please wait."})))
    forge.create_comment(3, "text")
    assert clock.waits == [60.0]


def test_a_wait_beyond_the_budget_is_refused_and_says_when(github: GitHub, forge: Forge, clock: Clock) -> None:
    github.faults.append((LIST, limited(**{"Retry-After": "3600"})))
    with pytest.raises(EnvironmentMissing, match=r"3600 s more is longer than greenlane waits .* after \d\d:\d\d UTC"):
        forge.comments(3)
    assert clock.waits == []


def test_waits_of_one_command_count_together(github: GitHub, forge: Forge, clock: Clock) -> None:
    github.faults += [(LIST, limited(**{"Retry-After": "100"}))] * 2
    with pytest.raises(EnvironmentMissing, match="rate limit"):
        forge.comments(3)
    assert clock.waits == [100.0]


@pytest.mark.parametrize("value", ["-5", "soon", "9" * 30, "1e9"])
def test_an_odd_retry_after_neither_hangs_nor_crashes(value: str, github: GitHub, forge: Forge, clock: Clock) -> None:
    github.faults.append((LIST, (403, {"Retry-After": value}, {"message": "API rate limit exceeded"})))
    try:
        forge.comments(3)
    except EnvironmentMissing as error:
        assert "\n" not in str(error)
    assert sum(clock.waits) <= 180


def test_a_failing_server_is_asked_again_a_few_times(github: GitHub, forge: Forge, clock: Clock) -> None:
    github.faults += [(LIST, (502, {}, b"<html>Bad Gateway</html>"))] * 2
    assert forge.comments(3) == []
    assert clock.waits == [1.0, 2.0]


def test_a_server_that_keeps_failing_is_an_error(github: GitHub, forge: Forge) -> None:
    github.faults += [(LIST, (503, {}, {"message": "down"}))] * 9
    with pytest.raises(Refused, match=r"refuses to read the comments of #3 \(503: down\); try again later"):
        forge.comments(3)


def test_a_creation_is_not_repeated_when_its_answer_is_lost(github: GitHub, forge: Forge) -> None:
    github.lost.append(POST)
    with pytest.raises(Unclear, match="may be done or not"):
        forge.create_comment(3, "text")
    assert len(github.bodies(3)) == 1


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (401, {"message": "Bad credentials"}, r"401: Bad credentials\); the token .* make a new one"),
        (403, {"message": "Resource not accessible by integration"}, r"permissions: \{pull-requests: write"),
        (403, {"message": "Resource protected by organization SAML enforcement."}, r"docs/ci\.md"),
        (404, {"message": "Not Found"}, r"404: Not Found\); check the repository and the number"),
        (410, {"message": "Issues are disabled"}, r"410"),
        (422, {"message": "Validation Failed", "errors": [{"field": "body", "code": "missing"}]}, "body missing"),
        (418, {"message": "short and stout"}, "418"),
    ],
)
def test_each_refusal_is_one_line_with_what_to_do(
    status: int, answer: Any, said: str, github: GitHub, forge: Forge
) -> None:
    github.faults.append((LIST, (status, {}, answer)))
    with pytest.raises(Refused, match=said) as raised:
        forge.comments(3)
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 3


def test_the_token_is_never_repeated(github: GitHub, forge: Forge) -> None:
    github.faults.append((LIST, (403, {}, {"message": f"the token {TOKEN} is not welcome"})))
    with pytest.raises(Refused) as raised:
        forge.comments(3)
    assert TOKEN not in str(raised.value)
    assert TOKEN not in repr(forge.account)


@pytest.mark.parametrize("answer", [b"<html>log in first</html>", {"oops": 1}, [1], [{"id": "x"}], b"{", b"\xff\xfe"])
def test_what_is_no_github_is_said_to_be_none(answer: Any, github: GitHub, forge: Forge) -> None:
    github.faults.append((LIST, (200, {"Content-Type": "text/html"}, answer)))
    with pytest.raises(EnvironmentMissing, match="GITHUB_API_URL") as raised:
        forge.comments(3)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("answer", ["short and stout", [1], 7])
def test_a_refusal_of_another_shape_is_no_traceback(answer: Any, github: GitHub, forge: Forge) -> None:
    github.faults.append((LIST, (418, {}, answer)))
    with pytest.raises(EnvironmentMissing):
        forge.comments(3)


def test_a_server_that_is_not_there_is_said_to_be_unreachable(clock: Clock) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        account = Account(f"http://127.0.0.1:{reserved.getsockname()[1]}", TOKEN)
        forge = connect(account, "o/r", Patience(account, sleep=clock.sleep, now=clock.now))
        with pytest.raises(EnvironmentMissing, match="can't be reached .* check the network"):
            forge.comments(3)
    assert clock.waits == [1.0, 2.0, 4.0, 8.0]


def test_a_redirect_to_another_host_gets_no_token(github: GitHub, forge: Forge) -> None:
    github.faults.append((LIST, (301, {"Location": "http://localhost:1/repos/o/r/issues/3/comments"}, {})))
    with pytest.raises(EnvironmentMissing, match="GITHUB_API_URL"):
        forge.comments(3)


def test_without_pygithub_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "github", None)
    with pytest.raises(EnvironmentMissing, match=r"pip install 'greenlane\[github\]'"):
        connect(Account("https://api.github.com", TOKEN), "o/r")


def test_the_account_is_of_the_environment() -> None:
    found = accounts.account({"GH_TOKEN": "t", "GITHUB_API_URL": "https://ghe.example.com/api/v3/"})
    assert (found.api, found.token, found.host) == ("https://ghe.example.com/api/v3", "t", "ghe.example.com")
    assert accounts.account({"GITHUB_TOKEN": "a", "GH_TOKEN": "b"}).token == "a"
    assert accounts.account({"GITHUB_TOKEN": "a"}).api == "https://api.github.com"


def test_without_a_token_it_says_where_to_put_one() -> None:
    with pytest.raises(EnvironmentMissing, match="GITHUB_TOKEN or GH_TOKEN"):
        accounts.account({})


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Evil: 1", "töken"])
def test_a_token_that_would_break_a_header_is_refused_unseen(token: str) -> None:
    with pytest.raises(EnvironmentMissing) as raised:
        accounts.account({"GITHUB_TOKEN": token})
    assert token not in str(raised.value)


@pytest.mark.parametrize(
    "api", ["http://ghe.example.com/api/v3", "ghe.example.com", "https://u:p@ghe/", "file:///x", "https://", "http://localhost.evil"]
)  # fmt: skip
def test_the_token_goes_by_https_only(api: str) -> None:
    with pytest.raises(MatrixError):
        accounts.account({"GITHUB_TOKEN": "t", "GITHUB_API_URL": api})


@pytest.mark.parametrize("name", ["", "o", "o/r/x", "../r", "o/..", "o/r?x=1", "o/r\n", "o /r", "-o/r"])
def test_a_repository_is_owner_and_name(name: str) -> None:
    with pytest.raises(MatrixError, match="OWNER/NAME"):
        accounts.repository(name)

"""What greenlane asks of GitHub, each as one call: PyGithub underneath, patience around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from greenlane.errors import EnvironmentMissing
from greenlane.github.account import Account

if TYPE_CHECKING:
    from github import Github

    from greenlane.github.patience import Patience

Shape = TypeVar("Shape")
PAGE = 100  # the most that GitHub gives at once
ACTIONS_BOT = "github-actions[bot]"
MAX_COMMENTS = 10_000
MAX_BODY = 1024 * 1024  # characters of a pull request's text that are read


@dataclass(frozen=True, slots=True)
class Comment:
    id: int
    author: str | None  # None: the account is gone
    body: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Pull:
    number: int
    state: str
    head: str  # commit
    head_repository: str | None  # None: the fork, or its branch's repository, is gone
    base: str  # branch
    base_repository: str
    clone_url: str
    body: str = ""

    @property
    def is_of_fork(self) -> bool:
        """What can't be told is not trusted."""
        return self.head_repository is None or self.head_repository.lower() != self.base_repository.lower()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a workflow."""

    id: int
    attempt: int
    event: str
    head: str
    head_branch: str
    head_repository: str | None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    id: int
    name: str
    size: int
    expired: bool = False


class Forge:
    """One repository at GitHub."""

    def __init__(self, client: Github, account: Account, patience: Patience, repository: str) -> None:
        self._client, self._account, self._patience = client, account, patience
        self.repository = repository

    @property
    def account(self) -> Account:
        return self._account

    def whoami(self) -> str | None:
        """The account's login, or None for the token of an app, which may not ask."""
        from greenlane.github.refusal import Refused

        try:
            return self._get("/user", "read the account", lambda entry: str(entry["login"]))
        except Refused as error:
            if error.status in {403, 404}:
                return None
            raise

    def comments(self, number: int) -> list[Comment]:
        found: list[Comment] = []
        path = self._path(f"issues/{number}/comments")
        for page in range(1, MAX_COMMENTS // PAGE + 1):
            entries = self._get(path, f"read the comments of #{number}", _each(_comment), page=page)
            found += entries
            if len(entries) < PAGE:
                break
        return found

    def create_comment(self, number: int, body: str) -> Comment:
        path = self._path(f"issues/{number}/comments")
        return self._write("POST", path, f"comment on #{number}", {"body": body}, _comment)

    def edit_comment(self, comment_id: int, body: str) -> Comment:
        path = self._path(f"issues/comments/{comment_id}")
        return self._write("PATCH", path, f"edit comment {comment_id}", {"body": body}, _comment, repeatable=True)

    def pull(self, number: int) -> Pull:
        return self._get(self._path(f"pulls/{number}"), f"read pull request #{number}", _pull)

    def open_pulls_of(self, owner: str, branch: str) -> list[Pull]:
        """Open pull requests from a branch of an owner's repository."""
        where = {"state": "open", "head": f"{owner}:{branch}"}
        return self._get(self._path("pulls"), "list pull requests", _each(_pull), **where)

    def open_pulls_onto(self, base: str) -> list[Pull]:
        """Open pull requests onto a branch, those that moved last first; no more than one page."""
        where = {"state": "open", "base": base, "sort": "updated", "direction": "desc"}
        return self._get(self._path("pulls"), "list pull requests", _each(_pull), **where)

    def run(self, run_id: int) -> Run:
        return self._get(self._path(f"actions/runs/{run_id}"), f"read run {run_id}", _run)

    def artifacts(self, run_id: int, most: int) -> list[Artifact]:
        found: list[Artifact] = []
        path = self._path(f"actions/runs/{run_id}/artifacts")
        while len(found) < most:
            page = len(found) // PAGE + 1
            entries = self._get(path, f"list the artifacts of run {run_id}", _artifacts, page=page)
            found += entries
            if len(entries) < PAGE:
                break
        return found[:most]

    def create_check(self, request: Mapping[str, Any]) -> int:
        return self._write("POST", self._path("check-runs"), "make a check run", request, lambda made: int(made["id"]))

    def update_check(self, check_id: int, request: Mapping[str, Any]) -> None:
        self._write("PATCH", self._path(f"check-runs/{check_id}"), "add to a check run", request, bool)

    def create_status(self, head: str, request: Mapping[str, Any]) -> None:
        path = self._path(f"statuses/{head}")
        self._write("POST", path, f"set the status of {head[:10]}", request, bool, repeatable=True)

    def _path(self, rest: str) -> str:
        return f"/repos/{self.repository}/{rest}"

    def _get(self, path: str, what: str, shape: Callable[[Any], Shape], **parameters: Any) -> Shape:
        if parameters:
            parameters["per_page"] = PAGE
        ask = self._client.requester.requestJsonAndCheck
        return self._shaped(shape, self._patience.call(what, lambda: ask("GET", path, parameters=parameters)[1]), what)

    def _write(
        self, verb: str, path: str, what: str, request: Mapping[str, Any], shape: Callable[[Any], Shape], *,
        repeatable: bool = False,
    ) -> Shape:  # fmt: skip
        ask = self._client.requester.requestJsonAndCheck
        answer = self._patience.call(what, lambda: ask(verb, path, input=dict(request))[1], repeatable=repeatable)
        return self._shaped(shape, answer, what)

    def _shaped(self, shape: Callable[[Any], Shape], answer: Any, what: str) -> Shape:
        try:
            return shape(answer)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise EnvironmentMissing(
                f"{self._account.host} answers what is no GitHub API to: {what}; check GITHUB_API_URL and any proxy"
            ) from None


def connect(account: Account, repository: str, patience: Patience | None = None) -> Forge:
    """The repository at the account's GitHub. Raises EnvironmentMissing where PyGithub is not installed."""
    try:
        import github
    except ImportError as error:
        raise EnvironmentMissing("this needs PyGithub: pip install 'greenlane[github]'") from error
    from greenlane.github.patience import Patience

    patience = patience or Patience(account)
    client = github.Github(
        auth=github.Auth.Token(account.token),
        base_url=account.api,
        retry=None,
        timeout=30,
        per_page=PAGE,
        user_agent="greenlane",
        seconds_between_requests=None,
        seconds_between_writes=patience.between_writes_s,
    )
    return Forge(client, account, patience, repository)


def _comment(entry: Mapping[str, Any]) -> Comment:
    author = (entry.get("user") or {}).get("login")
    return Comment(int(entry["id"]), author, str(entry.get("body") or ""), str(entry.get("html_url") or ""))


def _pull(entry: Mapping[str, Any]) -> Pull:
    head, base = entry["head"], entry["base"]
    return Pull(
        number=int(entry["number"]),
        state=str(entry["state"]),
        head=str(head["sha"]),
        head_repository=(head.get("repo") or {}).get("full_name"),
        base=str(base["ref"]),
        base_repository=str(base["repo"]["full_name"]),
        clone_url=str(base["repo"].get("clone_url") or ""),
        body=str(entry.get("body") or "")[:MAX_BODY],
    )


def _run(entry: Mapping[str, Any]) -> Run:
    return Run(
        id=int(entry["id"]),
        attempt=int(entry.get("run_attempt") or 1),
        event=str(entry["event"]),
        head=str(entry["head_sha"]),
        head_branch=str(entry.get("head_branch") or ""),
        head_repository=(entry.get("head_repository") or {}).get("full_name"),
        title=str(entry.get("display_title") or ""),
    )


def _artifact(entry: Mapping[str, Any]) -> Artifact:
    return Artifact(int(entry["id"]), str(entry["name"]), int(entry["size_in_bytes"]), bool(entry.get("expired")))


def _artifacts(answer: Mapping[str, Any]) -> list[Artifact]:
    return [_artifact(entry) for entry in answer["artifacts"]]


def _each(shape: Callable[[Any], Shape]) -> Callable[[Any], list[Shape]]:
    """For an answer that is a list; a message in its place is no list of one."""

    def shaped(answer: Any) -> list[Shape]:
        if not isinstance(answer, list):
            raise TypeError("not a list")
        return [shape(entry) for entry in answer]

    return shaped

"""A small GitHub that remembers: comments, pull requests, runs, artifacts, check runs. Answers as the real one does."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = "github-actions[bot]"
TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"
Reply = tuple[int, dict[str, str], Any]


@dataclass
class GitHub:
    """The state of one repository, `o/r`, and the requests that it was asked."""

    login: str | None = None  # None: an app's token, which may not ask for its account
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # by pull request
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    artifacts: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # by run
    blobs: dict[int, bytes] = field(default_factory=dict)
    checks: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # every request for one check run
    statuses: list[dict[str, Any]] = field(default_factory=list)
    may_make_checks: bool = True
    longest_body: int = 65_536
    faults: list[tuple[str, Reply]] = field(default_factory=list)  # (start of "VERB path", answer), each used once
    lost: list[str] = field(default_factory=list)  # starts of requests that are done, but whose answer is a 502
    asked: list[str] = field(default_factory=list)
    tokens: list[tuple[str, str]] = field(default_factory=list)
    before: Callable[[str], None] = lambda request: None
    url: str = ""
    next_id: int = 1000

    def comment(self, number: int, body: str, author: str | None = BOT) -> int:
        self.next_id += 1
        user = {"login": author} if author else None
        entry = {"id": self.next_id, "user": user, "body": body, "html_url": f"{self.url}/c/{self.next_id}"}
        self.comments.setdefault(number, []).append(entry)
        return self.next_id

    def pull(self, number: int, head: str, *, fork: str | None = "o/r", branch: str = "topic", **changes: Any) -> None:
        repo = {"full_name": fork} if fork else None
        owner = (fork or "ghost/r").partition("/")[0]
        self.pulls[number] = {
            "number": number, "state": "open", "body": "",
            "head": {"sha": head, "ref": branch, "label": f"{owner}:{branch}", "repo": repo},
            "base": {"ref": "main", "repo": {"full_name": "o/r", "clone_url": ""}},
        } | changes  # fmt: skip

    def run(
        self, run_id: int, head: str, *, event: str = "pull_request", fork: str | None = "o/r", **more: Any
    ) -> None:
        repo = {"full_name": fork} if fork else None
        self.runs[run_id] = {
            "id": run_id, "event": event, "head_sha": head, "head_branch": "topic", "head_repository": repo,
            "run_attempt": 1, "display_title": "change",
        } | more  # fmt: skip

    def artifact(self, run_id: int, name: str, content: bytes, **changes: Any) -> None:
        self.next_id += 1
        self.blobs[self.next_id] = content
        entry = {"id": self.next_id, "name": name, "size_in_bytes": len(content), "expired": False} | changes
        self.artifacts.setdefault(run_id, []).append(entry)

    def bodies(self, number: int) -> list[str]:
        return [entry["body"] for entry in self.comments.get(number, [])]

    def writes(self) -> list[str]:
        return [request for request in self.asked if not request.startswith("GET")]

    def answer(self, verb: str, path: str, query: dict[str, str], body: Any) -> Reply:
        request = f"{verb} {path}"
        self.asked.append(request)
        self.before(request)
        for position, (start, reply) in enumerate(self.faults):
            if request.startswith(start):
                del self.faults[position]
                return reply
        reply = self._answer(verb, path, query, body)
        for position, start in enumerate(self.lost):
            if request.startswith(start):
                del self.lost[position]
                return 502, {}, {"message": "Bad Gateway"}
        return reply

    def _answer(self, verb: str, path: str, query: dict[str, str], body: Any) -> Reply:
        for pattern, handler in ROUTES:
            found = re.fullmatch(pattern, f"{verb} {path}")
            if found:
                return handler(self, found, query, body)
        return 404, {}, {"message": "Not Found"}

    def _user(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        if self.login is None:
            return 403, {}, {"message": "Resource not accessible by integration"}
        return 200, {}, {"login": self.login}

    def _list(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        size, page = min(100, int(query.get("per_page", 30))), int(query.get("page", 1))
        entries = self.comments.get(int(found[1]), [])
        return 200, {}, entries[(page - 1) * size : page * size]

    def _create(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        if len(body["body"]) > self.longest_body:
            return self._too_long()
        self.comment(int(found[1]), body["body"], self.login or BOT)
        return 201, {}, self.comments[int(found[1])][-1]

    def _edit(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        if len(body["body"]) > self.longest_body:
            return self._too_long()
        for entry in (entry for entries in self.comments.values() for entry in entries):
            if entry["id"] == int(found[1]):
                entry["body"] = body["body"]
                return 200, {}, entry
        return 404, {}, {"message": "Not Found"}

    def _too_long(self) -> Reply:
        error = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long (maximum is 65536 characters)"}  # noqa: E501  # fmt: skip
        return 422, {}, {"message": "Validation Failed", "errors": [error]}

    def _pull(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        pull = self.pulls.get(int(found[1]))
        return (200, {}, pull) if pull else (404, {}, {"message": "Not Found"})

    def _pulls(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        wanted = [pull for pull in self.pulls.values() if pull["state"] == query["state"]]
        if "head" in query:
            wanted = [pull for pull in wanted if pull["head"]["label"] == query["head"]]
        if "base" in query:
            wanted = [pull for pull in wanted if pull["base"]["ref"] == query["base"]]
        return 200, {}, wanted

    def _run(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        run = self.runs.get(int(found[1]))
        return (200, {}, run) if run else (404, {}, {"message": "Not Found"})

    def _artifacts(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        entries = self.artifacts.get(int(found[1]), [])
        return 200, {}, {"total_count": len(entries), "artifacts": entries[(page - 1) * size : page * size]}

    def _zip(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        return 302, {"Location": f"{self.url}/blob/{found[1]}"}, {}

    def _blob(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        return 200, {}, self.blobs[int(found[1])]

    def _check(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        if not self.may_make_checks:
            return 403, {}, {"message": "You must authenticate via a GitHub App."}
        if len(body.get("output", {}).get("annotations", [])) > 50:
            return 422, {}, {"message": "Invalid request.\n\nNo more than 50 items are allowed"}
        check = int(found[1]) if found.re.groups else len(self.checks) + 1
        self.checks.setdefault(check, []).append(body)
        return 201, {}, {"id": check}

    def _status(self, found: re.Match[str], query: dict[str, str], body: Any) -> Reply:
        self.statuses.append(body | {"sha": found[1]})
        return 201, {}, {"id": 1, "state": body["state"]}


REPO = "/repos/o/r"
ROUTES: list[tuple[str, Callable[..., Reply]]] = [
    (r"GET /user", GitHub._user),
    (rf"GET {REPO}/issues/(\d+)/comments", GitHub._list),
    (rf"POST {REPO}/issues/(\d+)/comments", GitHub._create),
    (rf"PATCH {REPO}/issues/comments/(\d+)", GitHub._edit),
    (rf"GET {REPO}/pulls/(\d+)", GitHub._pull),
    (rf"GET {REPO}/pulls", GitHub._pulls),
    (rf"GET {REPO}/actions/runs/(\d+)", GitHub._run),
    (rf"GET {REPO}/actions/runs/(\d+)/artifacts", GitHub._artifacts),
    (rf"GET {REPO}/actions/artifacts/(\d+)/zip", GitHub._zip),
    (r"GET /blob/(\d+)", GitHub._blob),
    (rf"POST {REPO}/check-runs", GitHub._check),
    (rf"PATCH {REPO}/check-runs/(\d+)", GitHub._check),
    (rf"POST {REPO}/statuses/([0-9a-f]{{40}})", GitHub._status),
]


@contextmanager
def serving(github: GitHub) -> Iterator[GitHub]:
    """The fake at an address of its own, `github.url`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            github.tokens.append((parts.path, self.headers.get("Authorization", "")))
            status, headers, answer = github.answer(self.command, parts.path, query, body)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = handle_any

        def log_message(self, *arguments: object) -> None:
            """Nothing on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    github.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()

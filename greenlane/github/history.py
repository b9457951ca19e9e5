"""Fetches a pull request's commits as data: nothing of them is ever checked out or run."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from greenlane.errors import EnvironmentMissing
from greenlane.github.account import Account
from greenlane.github.forge import Pull
from greenlane.record.git import commit_of, git
from greenlane.report.markdown import plain

SCHEMES = frozenset({"https", "file"})
QUIET = (
    "--quiet",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-show-forced-updates",
)


def fetch(repository: Path, account: Account, pull: Pull) -> str:
    """Bring the pull request's head and its base's tip here. Returns the tip of the base."""
    base = f"refs/greenlane/base/{pull.number}"
    wanted = {f"refs/pull/{pull.number}/head": f"refs/greenlane/pull/{pull.number}", f"refs/heads/{pull.base}": base}
    _fetch(repository, account, pull.clone_url, wanted)
    tip = commit_of(repository, base)
    if tip is None or commit_of(repository, pull.head) is None:
        raise EnvironmentMissing(f"#{pull.number}: its head {pull.head[:10]} was not among what was fetched; try again")
    return tip


def fetch_others(repository: Path, account: Account, pull: Pull, numbers: Iterable[int]) -> dict[str, str]:
    """Bring the heads of other pull requests here. Returns ref -> "#number"; nothing where they can't be had."""
    names = {f"refs/greenlane/pull/{number}": f"#{number}" for number in numbers}
    refs = {f"refs/pull/{name[1:]}/head": ref for ref, name in names.items()}
    try:
        if refs:
            _fetch(repository, account, pull.clone_url, refs)
    except EnvironmentMissing:
        return {}
    return names


def fetch_ref(repository: Path, account: Account, clone_url: str, ref: str) -> bool:
    """Bring one ref here under its own name; False where the server has none."""
    try:
        _fetch(repository, account, clone_url, {ref: ref})
    except EnvironmentMissing as error:
        if "couldn't find remote ref" in str(error):
            return False
        raise
    return True


def push_ref(repository: Path, account: Account, clone_url: str, ref: str) -> None:
    """Give one ref to the server, as a fast-forward or not at all."""
    _run(repository, account, clone_url, "push", "--quiet", clone_url, f"{ref}:{ref}")


def _fetch(repository: Path, account: Account, clone_url: str, refs: dict[str, str]) -> None:
    specs = [f"+{theirs}:{ours}" for theirs, ours in refs.items()]
    _run(repository, account, clone_url, "fetch", *QUIET, clone_url, *specs)


def _run(repository: Path, account: Account, clone_url: str, *arguments: str) -> None:
    scheme = urlsplit(clone_url).scheme
    if scheme not in SCHEMES:
        raise EnvironmentMissing(
            f"{account.host} names {plain(clone_url, 100)!r} as the repository's address: not https"
        )
    ran = git(repository, *arguments, env=_authorized(account, clone_url), check=False)
    if ran.returncode != 0:
        lines = account.masked(ran.stderr.decode(errors="replace")).strip().splitlines() or ["no reason given"]
        raise EnvironmentMissing(f"git {arguments[0]}: {plain(lines[0], 200)}; may the token read the repository?")


def _authorized(account: Account, clone_url: str) -> dict[str, str]:
    """Settings by environment, so that the token stands in no argument and in no file; hooks and helpers are off."""
    settings = [
        ("core.hooksPath", "/dev/null"),
        ("protocol.allow", "never"),
        ("protocol.https.allow", "always"),
        ("protocol.file.allow", "always"),
        ("credential.helper", ""),
    ]
    if urlsplit(clone_url).scheme == "https":
        basic = base64.b64encode(f"x-access-token:{account.token}".encode()).decode()
        settings.append((f"http.{clone_url}.extraheader", f"AUTHORIZATION: basic {basic}"))
    environment = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment

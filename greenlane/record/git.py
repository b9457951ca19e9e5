"""The one way in which greenlane calls git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from greenlane.errors import EnvironmentMissing

QUIET = ("-c", "core.quotePath=false")


def git(
    repository: Path, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run git in the repository. With `check` a refusal is an EnvironmentMissing that holds git's own first line."""
    try:
        ran = subprocess.run(
            ["git", "-C", str(repository), *QUIET, *arguments],
            input=stdin,
            capture_output=True,
            env=os.environ | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"} | (env or {}),
        )
    except OSError as error:
        raise EnvironmentMissing(f"git cannot be run: {error.strerror}; install git") from error
    if check and ran.returncode != 0:
        reason = ran.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise EnvironmentMissing(f"git {arguments[0]} in {repository}: {reason[0]}")
    return ran


def git_text(repository: Path, *arguments: str) -> str:
    """What git prints, decoded and stripped."""
    return git(repository, *arguments).stdout.decode("utf-8", "surrogateescape").strip()


def commit_of(repository: Path, revision: str) -> str | None:
    """The commit that a revision names, or None where there is none here."""
    found = git(
        repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", check=False
    )
    return found.stdout.decode().strip() or None

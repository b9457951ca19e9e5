"""The event that a workflow runs for, as GitHub wrote it into a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAX_EVENT_BYTES = 30 * 1024 * 1024


def read(environment: Mapping[str, str]) -> dict[str, Any]:
    """The event, or nothing where there is none or it can't be read."""
    try:
        with Path(environment["GITHUB_EVENT_PATH"]).open("rb") as file:
            event = json.loads(file.read(MAX_EVENT_BYTES))
    except (KeyError, OSError, ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def text_of(event: Mapping[str, Any]) -> str | None:
    """The pull request's text, empty where it has none; None where the event is no pull request's."""
    pull = event.get("pull_request")
    return str(pull.get("body") or "") if isinstance(pull, Mapping) else None


def is_of_fork(environment: Mapping[str, str], event: Mapping[str, Any]) -> bool:
    """Whether this is a pull request from another repository: its token may only read. What can't be told, is."""
    if environment.get("GITHUB_EVENT_NAME") != "pull_request":
        return False
    try:
        pull = event["pull_request"]
        return bool(pull["head"]["repo"]["full_name"] != pull["base"]["repo"]["full_name"])
    except (KeyError, TypeError):
        return True

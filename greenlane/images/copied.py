"""Which files of its folder a Dockerfile reads, so that an edit to any other file makes no image again."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

ALWAYS = (".dockerignore",)
_COPY = re.compile(r"\s*(?:ONBUILD\s+)?(COPY|ADD)\s+(.*)", re.IGNORECASE)
_BOUND = re.compile(r"\s*RUN\s.*--mount=(?:\S*,)?type=bind|\s*RUN\s+--mount=(?!\S*type=)", re.IGNORECASE)
_ELSEWHERE = re.compile(r"https?:|git@|ssh:")


def copied(dockerfile: str, names: Collection[str]) -> list[str] | None:
    """Those of `names` that a Dockerfile with this text copies; None where that can't be told."""
    sources: list[str] = []
    for line in instructions(dockerfile):
        if _BOUND.match(line) and "from=" not in line:
            return None
        if copy := _COPY.match(line):
            found = _sources(copy[2])
            if found is None:
                return None
            sources += found
    return [name for name in names if name in ALWAYS or any(_takes(source, name) for source in sources)]


def instructions(dockerfile: str) -> Iterator[str]:
    """One line per instruction: continued ones joined, comments left out."""
    joined = ""
    for line in dockerfile.splitlines():
        if line.lstrip().startswith("#"):
            continue
        joined += line.rstrip().removesuffix("\\")
        if not line.rstrip().endswith("\\"):
            yield joined
            joined = ""
    yield joined


def _sources(words: str) -> list[str] | None:
    """What one COPY takes from the build context; None for names that only the build knows."""
    flags = re.match(r"(?:--\S+\s+)*", words)
    rest = words[flags.end() :] if flags else words
    if flags and "--from=" in flags[0]:
        return []
    if "$" in rest or "<<" in rest:
        return None
    try:
        named = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    except ValueError:
        return None
    return [_plain(str(name)) for name in named[:-1] if not _ELSEWHERE.match(str(name))]


def _plain(name: str) -> str:
    return posixpath.normpath(name.lstrip("/") or ".")


def _takes(source: str, name: str) -> bool:
    """Whether a COPY of `source` takes the file: itself, a folder above it, or a glob on either."""
    if source == ".":
        return True
    depth = source.count("/") + 1
    head = "/".join(name.split("/")[:depth])
    return fnmatchcase(head, source)

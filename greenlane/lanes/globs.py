"""Path globs with `**`, as `paths` and `sources` in the matrix use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """
    >>> matcher(["csrc/**", "*.md"])("csrc/vt/backend.h")
    True
    >>> matcher(["csrc/**", "*.md"])("docs/lanes.md")
    False
    """
    return re.compile("|".join(f"(?:{_regex(glob)})" for glob in globs)).fullmatch  # type: ignore[return-value]


def _regex(glob: str) -> str:
    tokens = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    wild = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return "".join(wild.get(token) or re.escape(token) for token in tokens)

"""Path globs with `**`, as `paths`, `sources` and `irrelevant` use them."""

from __future__ import annotations

import functools
import re

_WILD = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}


@functools.lru_cache(maxsize=4096)
def compiled(glob: str) -> re.Pattern[str]:
    """
    >>> bool(compiled("csrc/**").fullmatch("csrc/vt/backend.h")), bool(compiled("*.md").fullmatch("docs/lanes.md"))
    (True, False)
    """
    tokens = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    return re.compile("".join(_WILD.get(token) or re.escape(token) for token in tokens), re.DOTALL)


def first_match(globs: tuple[str, ...], path: str) -> str | None:
    """The first glob that matches the path."""
    return next((glob for glob in globs if compiled(glob).fullmatch(path)), None)

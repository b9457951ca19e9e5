"""Text from strangers, made safe for GitHub's Markdown: no mention, no HTML, no reference, no second meaning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

ZERO_WIDTH = "\u200b"  # put behind @ and #, it keeps GitHub from making a mention or a reference
SPECIAL = re.compile(r"([\\`*_{}\[\]()<>|~!^$+-])")
REFERENCE = re.compile(r"([@#])(?=\w)|(?<=\w)(#)(?=\d)|\b(GH)-(?=\d)", re.IGNORECASE)
LINK = re.compile(r"\b(https?|ftp|www|mailto)(?=[:.])", re.IGNORECASE)


def plain(text: object, limit: int = 300) -> str:
    """One line without control characters or text-direction tricks, cut at `limit` characters."""
    start = str(text)[: limit * 4]
    if start.isascii() and start.isprintable():
        line = " ".join(start.split())
        return line if len(line) <= limit else line[: limit - 1] + "…"
    kept = (" " if char in "\r\n\t\v\f\x85\u2028\u2029" else char for char in start)
    line = " ".join("".join(char for char in kept if not _hidden(char)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _hidden(char: str) -> bool:
    """Control, format (bidirectional overrides, zero-width), surrogate and private-use characters."""
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn"}


def text(value: object, limit: int = 300) -> str:
    """Prose, also inside a table cell: every character that Markdown or GitHub reads as more is disarmed.

    >>> text("ping @team about <b>#12</b> | x")
    'ping @\u200bteam about \\\\<b\\\\>#\u200b12\\\\</b\\\\> \\\\| x'
    """
    line = SPECIAL.sub(r"\\\1", plain(value, limit))
    line = REFERENCE.sub(lambda match: match.group() + ZERO_WIDTH, line)
    return LINK.sub(lambda match: match.group() + ZERO_WIDTH, line).replace("&", "&amp;")


def code(value: object, limit: int = 300) -> str:
    """An inline code span, also inside a table cell. Nothing inside a span is a mention, a link or HTML.

    >>> code("a `b` | c")
    '``a `b` \\\\| c``'
    """
    line = plain(value, limit).replace("|", "\\|") or " "
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def block(value: str, lines: int = 12, width: int = 300) -> str:
    """A fenced block that its content cannot close."""
    kept = [plain_line(line, width) for line in value.splitlines()[:lines]]
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", "\n".join(kept)) or [""]))
    return "\n".join((f"{fence}text", *kept, fence))


def plain_line(line: str, width: int) -> str:
    """One line of a block: indentation stays."""
    shown = "".join(char for char in line.expandtabs(4)[: width * 4] if not _hidden(char))
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table of cells that are Markdown already."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def folded(summary: str, content: str) -> str:
    """A section that opens on a click. `summary` is HTML that we wrote; the content is Markdown."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"

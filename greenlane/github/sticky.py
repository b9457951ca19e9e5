"""The one comment that greenlane keeps on a pull request: found by marker and author, written only when needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from greenlane.errors import EnvironmentMissing
from greenlane.github.forge import ACTIONS_BOT, Comment, Forge
from greenlane.github.refusal import TooLong, Unclear
from greenlane.report.comment import BUDGET, MARKER

SMALLEST = 4_000  # characters; a comment that does not fit even then is not sent
# The last line of a comment, so that nothing that a lane printed can be taken for it.
STAMP = re.compile(r"\n<!-- greenlane: head=([0-9a-f]{40,64})(?: run=(\d{1,20})\.(\d{1,6}))? -->\s*\Z")


class Posted(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    OUTRUN = "not written: a newer run has commented on this head already"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which head a comment speaks of, and which run wrote it; none for a person's own call."""

    head: str
    run: tuple[int, int] | None = None  # id, attempt

    def line(self) -> str:
        run = f" run={self.run[0]}.{self.run[1]}" if self.run else ""
        return f"\n<!-- greenlane: head={self.head}{run} -->\n"


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of the comment."""

    posted: Posted
    comment: Comment
    duplicates: tuple[Comment, ...] = ()  # older ones of ours, left as they are


def keep(forge: Forge, number: int, author: str, stamp: Stamp, render: Callable[[int], str]) -> Kept:
    """Create the comment, update it, or leave it. `render` gives the text for a budget of characters.

    A creation without an answer may have happened, so the comments are read again before it is tried once more.
    """
    try:
        return _once(forge, number, author, stamp, render)
    except Unclear:
        return _once(forge, number, author, stamp, render)


def _once(forge: Forge, number: int, author: str, stamp: Stamp, render: Callable[[int], str]) -> Kept:
    ours = mine(forge.comments(number), author)
    newest, older = (ours[0], tuple(ours[1:])) if ours else (None, ())
    if newest is None:
        return Kept(Posted.CREATED, _fitting(lambda body: forge.create_comment(number, body), stamp, render))
    if _outrun(newest, stamp):
        return Kept(Posted.OUTRUN, newest, older)
    if _same(newest.body, render(BUDGET) + stamp.line()):
        return Kept(Posted.UNCHANGED, newest, older)
    edited = _fitting(lambda body: forge.edit_comment(newest.id, body), stamp, render)
    return Kept(Posted.UPDATED, edited, older)


def mine(comments: Iterable[Comment], author: str) -> list[Comment]:
    """Ours, newest first. The marker alone proves nothing: anybody can write it."""
    wanted = author.lower()
    found = [c for c in comments if (c.author or "").lower() == wanted and c.body.lstrip().startswith(MARKER)]
    return sorted(found, key=lambda comment: comment.id, reverse=True)


def stamp_of(body: str) -> Stamp | None:
    """What the last line of a comment says of it; None where somebody has edited it away."""
    found = STAMP.search(body.replace("\r\n", "\n"))
    if found is None:
        return None
    return Stamp(found[1], (int(found[2]), int(found[3])) if found[2] else None)


def _outrun(comment: Comment, stamp: Stamp) -> bool:
    """For one head the run that began last has the last word; a person's own call always may write."""
    before = stamp_of(comment.body)
    if before is None or before.run is None or stamp.run is None:
        return False
    return before.head == stamp.head and before.run > stamp.run


def _same(shown: str, wanted: str) -> bool:
    """GitHub keeps line ends and trailing spaces in its own way."""
    return _lines(shown) == _lines(wanted)


def _lines(body: str) -> list[str]:
    return [line.rstrip() for line in body.strip().splitlines()]


def _fitting(send: Callable[[str], Comment], stamp: Stamp, render: Callable[[int], str]) -> Comment:
    """Send; where GitHub finds it too long after all, send half of it."""
    budget = BUDGET
    while True:
        try:
            return send(render(budget) + stamp.line())
        except TooLong:
            budget //= 2
            if budget < SMALLEST:
                raise


def author_of(forge: Forge, given: str | None, in_actions: bool) -> str:
    """The login that our comments carry. A workflow's own token may not ask for it, and always is the same bot."""
    login = given or forge.whoami() or (ACTIONS_BOT if in_actions else None)
    if login is None:
        raise EnvironmentMissing("this token may not say whose it is: name its account by --author, like 'my-app[bot]'")
    return login

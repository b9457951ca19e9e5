"""The HTML page: one file that holds everything, and asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from greenlane import __version__
from greenlane.errors import MatrixError
from greenlane.report import signs
from greenlane.report.page.grid import grid
from greenlane.report.page.headline import headline
from greenlane.report.page.lane import LaneView
from greenlane.report.templates import Templates
from greenlane.review.model import Review

ATTENTION = 12  # causes that are told of above the grid
NO_OTHER_SOURCE = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class Page:
    """What the page shows."""

    project: str
    lanes: Sequence[LaneView]
    review: Review | None = None
    made: datetime | None = None


def render(page: Page, templates: Templates) -> str:
    style, script = templates.render("page/page.css"), templates.render("page/page.js")
    causes = first_errors(page.lanes)
    return templates.render(
        "page/page.html",
        policy=f"{NO_OTHER_SOURCE}; style-src '{_hashed(style)}'; script-src '{_hashed(script)}'",
        style=_inline("page/page.css", style, "style"),
        script=_inline("page/page.js", script, "script"),
        version=__version__,
        project=page.project,
        made=(page.made or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        headline=headline(page.lanes, page.review),
        lanes=page.lanes,
        backends=grid(page.lanes),
        causes=causes[:ATTENTION],
        more_causes=max(0, len(causes) - ATTENTION),
        words=_counted([(lane.word, lane.family) for lane in page.lanes]),
        review=page.review,
        claims=[(claim, signs.of_claim(claim.state)) for claim in page.review.claims] if page.review else [],
        signs={str(family): sign for family, sign in signs.SIGN.items()},
    )


def first_errors(lanes: Sequence[LaneView]) -> list[list[LaneView]]:
    """Red lanes by cause: those that failed alike stand together, the cause of most lanes first."""
    causes: dict[object, list[LaneView]] = defaultdict(list)
    for lane in lanes:
        if lane.family in (signs.Family.BAD, signs.Family.UNSURE):
            alike = lane.error and lane.error.fingerprint and (lane.word, lane.error.stage, lane.error.fingerprint)
            causes[alike or lane.id].append(lane)
    return sorted(causes.values(), key=len, reverse=True)


def _hashed(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _inline(name: str, content: str, element: str) -> Markup:
    """Content of an element that no escape works in; it comes from a template, never from a record."""
    if f"</{element}" in content.lower():
        raise MatrixError(f"{name}: holds its own end tag; write it in two parts")
    return Markup(content)


def _counted(words: list[tuple[str, signs.Family]]) -> list[dict[str, Any]]:
    """Every verdict that occurs, the most urgent family first."""
    order = list(signs.Family)
    urgency = {family: place for place, family in enumerate([*order[1:], order[0]])}
    counts = Counter(words)
    ranked = sorted(counts, key=lambda key: (urgency[key[1]], key[0]))
    return [{"word": word, "family": family, "count": counts[word, family]} for word, family in ranked]

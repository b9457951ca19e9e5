"""The first line of a review: what needs whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from greenlane.report.markdown import code
from greenlane.review.model import LaneReview, Review, Verdict

BY_CHANGE = (Verdict.NEW_RED, Verdict.OVERLAP_RED)
OLDER = (Verdict.RED_ON_BASE, Verdict.KNOWN_RED)
Quote = Callable[[str], str]

# Reds that are nobody's yet: what is to be done about them.
UNSURE = {
    Verdict.UNCLASSIFIED: "red, and nobody knows since when: it has to run on the base too (--base)",
    Verdict.FLAKY: "flaky: somebody has to find out why",
    Verdict.VOID: "not measured: somebody has to run it again",
    Verdict.INFRA: "cut by the infrastructure: somebody has to run it again",
    Verdict.BLOCKED: "blocked by an earlier red",
}


def headline(review: Review, quote: Quote = str) -> tuple[str, str]:
    """(sign, text). Names of files and lanes go through `quote`, which makes them fit for where the text is shown."""
    sign, told = _told(review, quote)
    if review.text_problems and not review.broken:
        told += "; the text lacks what the matrix asks for" if sign != "🟢" else ""
        if sign == "🟢":
            return "🟠", "The lanes are fine, but the text lacks what the matrix asks for: the author has to add it"
    if any(change.loosens for change in review.policy_changes):
        sign = "🟠" if sign == "🟢" else sign
        told += " — and this change sets or loosens its own rules, which a maintainer has to agree to"
    return sign, told


def title(review: Review) -> str:
    sign, told = headline(review, code)
    return f"## {sign} {told}"


def _told(review: Review, quote: Quote) -> tuple[str, str]:
    required = [lane for lane in review.lanes if lane.required]
    if review.broken:
        return "🔴", "The matrix cannot be read: the author has to mend it"
    if review.merge.state == "conflict":
        files = _named([conflict.file for conflict in review.merge.conflicts], quote, "files")
        return "🔴", f"Conflicts with {quote(review.base_commit)} in {files}: the author has to rebase"
    reds = [told for told in (_by_change(required, quote), *_unsure(required, quote)) if told]
    if reds:
        sign = "🔴" if _of(required, BY_CHANGE) or _of(required, (Verdict.UNCLASSIFIED,)) else "🟠"
        return sign, "; ".join(reds)
    if review.merge.state == "unknown":
        return "⚪", f"Nobody can say whether this merges: {review.merge.reason}"
    return _unproven(required, quote) or _proven(required)


def _by_change(required: Sequence[LaneReview], quote: Quote) -> str:
    reds = _of(required, BY_CHANGE)
    older = len(_of(required, OLDER))
    if not reds:
        return ""
    before = f" ({older} more {'was' if older == 1 else 'were'} red before it)" if older else ""
    return f"{_lanes(reds, quote)} red by this change{before}: the author has to look"


def _unsure(required: Sequence[LaneReview], quote: Quote) -> list[str]:
    told = []
    for verdict, what in UNSURE.items():
        lanes = _of(required, (verdict,))
        if lanes:
            told.append(f"{_lanes(lanes, quote)} {what if len(lanes) == 1 else what.replace(' it ', ' them ')}")
    return told


def _unproven(required: Sequence[LaneReview], quote: Quote) -> tuple[str, str] | None:
    missing = _of(required, (Verdict.NOT_RUN,))
    if not missing:
        return None
    them = "it" if len(missing) == 1 else "them"
    if all(lane.trust == "fork" and not lane.stale for lane in missing):
        them_too = f"somebody who is trusted has to run {them} too"
        return "⚪", f"{_lanes(missing, quote)} run by the fork alone: {them_too}"
    return "⚪", f"Nothing is red, but {_lanes(missing, quote)} not proven: somebody has to run {them}"


def _proven(required: Sequence[LaneReview]) -> tuple[str, str]:
    older = len(_of(required, OLDER))
    if not required:
        return "⚪", "The matrix requires no lane, so nothing is proven"
    if not older:
        return "🟢", f"All {len(required)} required lanes are proven at this commit"
    proven = len(required) - older
    lanes = "required lane is" if proven == 1 else "required lanes are"
    return "🟢", f"{proven} {lanes} proven at this commit; {older} {'was' if older == 1 else 'were'} red before it"


def _of(lanes: Sequence[LaneReview], verdicts: Sequence[Verdict]) -> list[LaneReview]:
    return [lane for lane in lanes if lane.verdict in verdicts]


def _lanes(lanes: Sequence[LaneReview], quote: Quote) -> str:
    return f"{_named([lane.id for lane in lanes], quote, 'lanes')} {'is' if len(lanes) == 1 else 'are'}"


def _named(names: Sequence[str], quote: Quote, many: str) -> str:
    """One or two by name, more by their number."""
    return " and ".join(map(quote, names)) if len(names) <= 2 else f"{len(names)} {many}"

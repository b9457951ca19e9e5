"""The pull-request comment: what needs whom comes first, and what does not fit is cut last things first."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from greenlane.errors import MatrixError
from greenlane.report import sections
from greenlane.report.headline import title
from greenlane.report.markdown import folded
from greenlane.report.sections import Section
from greenlane.report.templates import Templates
from greenlane.review.model import LaneReview, Review, Verdict

MARKER = "<!-- greenlane: status of every lane -->"
BUDGET = 60_000  # characters, of GitHub's 65,536
RED_GROUPS = 10  # causes shown in full
TABLE_LANES = 60  # rows of the main table; the rest is counted and folded


def render(review: Review, budget: int = BUDGET, templates: Templates | None = None) -> str:
    """The whole comment within the budget. Sections are shortened, then dropped, in the order of their weight."""
    templates = templates or Templates()
    chosen = list(_sections(review))
    comment = _joined(chosen, templates)
    for section in sorted(chosen, key=lambda section: section.weight):
        if len(comment) <= budget:
            return comment
        chosen[chosen.index(section)] = Section(section.name, section.short, section.weight)
        comment = _joined(chosen, templates)
    if len(comment) > budget:
        raise MatrixError(f"comment.md: {len(comment)} characters with every section cut, and {budget} fit; shorten it")
    return comment


def _joined(chosen: list[Section], templates: Templates) -> str:
    """What the template makes of sections that are Markdown already."""
    finished = [{"name": section.name, "content": Markup(section.content)} for section in chosen]
    return templates.render("comment.md", marker=Markup(MARKER), sections=finished)


def _sections(review: Review) -> Iterator[Section]:
    lanes = sections.by_urgency(review.lanes)
    reds = [lane for lane in lanes if lane.blocks and lane.verdict is not Verdict.NOT_RUN]
    open_findings = any(found.severity != "note" for found in review.findings)
    yield Section("title", title(review), 100)
    yield Section("binding", sections.binding(review), 99)
    yield Section("broken", sections.broken(review), 98, _left_out("matrix's mistakes"))
    yield Section("merge", sections.conflicts(review), 90, _left_out("list of conflicts"))
    if open_findings:
        yield Section("findings", sections.findings(review), 85, _left_out("list of findings"))
    yield from _red_sections(reds, review)
    yield Section(
        "table", "### Lanes\n\n" + sections.lane_table(lanes[:TABLE_LANES], review.head), 70, _short_table(lanes)
    )
    yield Section("claims", sections.claim_table(review), 60, _left_out("table of claims"))
    yield Section("text", sections.text_problems(review), 62, _left_out("list of what the text lacks"))
    yield Section("policy", sections.policy(review), 65, _left_out("list of edits to the rules"))
    yield Section("older", sections.older_reds(review), 40, _left_out("list of older reds"))
    yield Section("not-run", sections.not_run(review), 30, _left_out("list of lanes not proven"))
    if not open_findings:
        yield Section("findings", sections.findings(review), 20, _left_out("list of notes"))
    yield from _more_lanes(lanes[TABLE_LANES:], review.head)
    yield Section("notes", sections.notes(review), 95)


def _left_out(what: str) -> str:
    return f"_The {what} is left out, since it is too long; the full report has it._"


def _red_sections(reds: list[LaneReview], review: Review) -> Iterator[Section]:
    groups = sections.groups(reds, review.systemic)
    for position, lanes in enumerate(groups[:RED_GROUPS]):
        name = ", ".join(lane.id for lane in lanes[:3])
        short = f"- {sections.SIGN[lanes[0].verdict]} {sections.named([lane.id for lane in lanes])} {lanes[0].verdict}"
        yield Section(f"red {name}", sections.red_group(lanes, review.head, review.systemic), 80 - position, short)
    rest = [lane.id for lanes in groups[RED_GROUPS:] for lane in lanes]
    if rest:
        yield Section("more reds", f"{sections.counted(len(rest), 'more red lane')}: {sections.named(rest, 40)}", 79)


def _more_lanes(rest: list[LaneReview], head: str) -> Iterator[Section]:
    if rest:
        content = folded(f"{len(rest)} more lanes", sections.lane_table(rest, head))
        yield Section("more", content, 10, f"_{len(rest)} more lanes are in the full report._")


def _short_table(lanes: list[LaneReview]) -> str:
    counts = {verdict: sum(lane.verdict is verdict for lane in lanes) for verdict in Verdict}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)

"""The review's verdict on the head: a check run with annotations, or a commit status where the token is no app's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from greenlane.github.forge import Forge
from greenlane.github.refusal import Refused
from greenlane.report.headline import headline
from greenlane.report.markdown import plain
from greenlane.review.model import LaneReview, Review

NAME = "greenlane verdict"
BATCH = 50  # annotations that GitHub takes in one request
MOST = 500
SUMMARY = 60_000  # characters, of GitHub's 65,535
TITLE, DESCRIPTION = 200, 140  # characters of a check run's title and of a commit status
LEVEL = {"error": "failure", "warning": "warning", "note": "notice"}
CONCLUSION = {0: "success", 1: "failure", 2: "failure", 3: "action_required", 4: "action_required"}
STATE = {0: "success", 1: "failure", 2: "failure", 3: "pending", 4: "pending"}


def publish(forge: Forge, review: Review, summary: str, url: str = "") -> str:
    """Write the verdict, with a link to `url`. Returns one line that says how.

    A newer check run of the same name takes the older's place.
    """
    found = list(places(review))
    try:
        _check_run(forge, review, summary, found[:MOST], url)
    except Refused as error:
        if error.status not in {403, 404} or "integration" in error.said.lower():
            raise
        request = {"state": STATE[review.exit_code], "description": _title(review, DESCRIPTION), "context": NAME}
        forge.create_status(review.head, request | ({"target_url": url} if url else {}))
        return f"commit status {NAME!r}: {STATE[review.exit_code]} (only an app's token can make a check run)"
    told = f"check run {NAME!r}: {CONCLUSION[review.exit_code]}, {min(len(found), MOST)} annotations"
    return told + (f", {len(found) - MOST} more left out" if len(found) > MOST else "")


def _check_run(forge: Forge, review: Review, summary: str, found: list[dict[str, Any]], url: str) -> None:
    output = {"title": _title(review, TITLE), "summary": summary[:SUMMARY]}
    batches = [found[start : start + BATCH] for start in range(0, len(found), BATCH)] or [[]]
    request = {
        "name": NAME,
        "head_sha": review.head,
        "status": "completed",
        "conclusion": CONCLUSION[review.exit_code],
        "output": {**output, "annotations": batches[0]},
    }
    check = forge.create_check(request | ({"details_url": url} if url else {}))
    for batch in batches[1:]:
        forge.update_check(check, {"output": {**output, "annotations": batch}})


def _title(review: Review, limit: int) -> str:
    return plain(headline(review)[1], limit)


def places(review: Review) -> Iterator[dict[str, Any]]:
    """First errors of lanes that block, then findings; each place and message once, whichever lanes share it."""
    seen: set[tuple[Any, ...]] = set()
    for annotation in (*_errors(review), *_findings(review)):
        key = (annotation["path"], annotation["start_line"], annotation["message"])
        if key not in seen:
            seen.add(key)
            yield annotation


def _errors(review: Review) -> Iterator[dict[str, Any]]:
    for lane in review.lanes:
        if not lane.blocks:
            continue
        for stage in lane.stages:
            if stage.outcome.is_red and stage.message:
                yield from _annotation(stage.file, stage.line, "failure", f"{lane.id}: {lane.verdict}", stage.message)


def _findings(review: Review) -> Iterator[dict[str, Any]]:
    for lane in review.lanes:
        for found in _of(lane):
            level = LEVEL.get(str(found.get("severity")), "notice")
            message = str(found.get("message") or "")
            yield from _annotation(found.get("file"), found.get("line"), level, str(found.get("rule") or ""), message)


def _of(lane: LaneReview) -> tuple[Mapping[str, Any], ...]:
    return lane.findings


def _annotation(file: Any, line: Any, level: str, title: str, message: str) -> Iterator[dict[str, Any]]:
    """Nothing for a place that lies outside of the repository or on no line: GitHub would refuse the whole batch."""
    path = _inside(file)
    if path is None or not message.strip():
        return
    number = line if isinstance(line, int) and 1 <= line < 2**31 else 1
    yield {
        "path": path,
        "start_line": number,
        "end_line": number,
        "annotation_level": level,
        "title": plain(title, 200),
        "message": plain(message, 2_000),
    }


def _inside(file: Any) -> str | None:
    if not isinstance(file, str) or not file or len(file) > 1_000 or not file.isprintable():
        return None
    path = PurePosixPath(file)
    return None if path.is_absolute() or ".." in path.parts else str(path)

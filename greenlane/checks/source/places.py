"""Where a name stands in a file, on lines that a lane surely compiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView

MOST_SITES = 20  # of one name in one file


def occurrences(project: Project, view: LaneView, path: str, name: str) -> Iterator[tuple[int, int]]:
    """(line, column) wherever a name stands for itself: no member, not qualified, not in a directive."""
    pattern = re.compile(rf"(?<![\w.])(?<!->)(?<!::){re.escape(name)}\b(?!\s*::)")
    file = project.sources[path]
    found = 0
    for number, text in enumerate(file.code_lines, 1):
        if name not in text or number in file.directive_lines:
            continue
        for match in pattern.finditer(text):
            if found < MOST_SITES and project.is_judged(view, path, number):
                found += 1
                yield number, match.start() + 1


def maybe_lost(project: Project, view: LaneView, files: Iterable[str], name: str) -> bool:
    """Whether a file that the grammar didn't take whole may declare a function: its name stands at unknown places."""
    pattern = re.compile(rf"\b{re.escape(name)}\s*\(")
    doubtful = project.names(view).files("doubtful", "")
    wanted = set(files)
    for path in doubtful:
        if path not in wanted:
            continue
        facts = project.facts(view, path)
        if name not in facts.tokens:
            continue
        known = {function.line for function in facts.functions if function.name == name}
        known |= {call.line for call in facts.calls if call.name == name}
        for number, text in enumerate(project.sources[path].code_lines, 1):
            if name in text and number not in known and pattern.search(text) and view.life(path, number) != Life.DEAD:
                return True
    return False

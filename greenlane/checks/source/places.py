"""Where a name stands in a file, on lines that a lane surely compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from greenlane.checks.source.project import Project
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

"""What a change touches: files and line ranges between the merge base and the head."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from greenlane.record.git import git

HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")
NEAR = 30  # lines around a changed one that count as the same code


@dataclass(frozen=True)
class Change:
    """Changed files, with the ranges of their new lines."""

    files: dict[str, list[tuple[int, int]]]

    def touches(self, file: str | None, line: int | None) -> bool:
        """Whether the change touches the failing code. A name without a folder matches any changed file of that name;
        without a line the file decides."""
        if not file:
            return False
        wanted = PurePosixPath(file.replace("\\", "/"))
        for name, ranges in self.files.items():
            path = PurePosixPath(name)
            same = path == wanted or str(path).endswith(f"/{wanted}") or str(wanted).endswith(f"/{path}")
            if same and (line is None or not ranges or _near(ranges, line)):
                return True
        return False

    def mentions(self, name: str | None) -> bool:
        """Whether a changed file's name is in the failing target's: `combine.cu.o` for `csrc/combine.cu`."""
        return bool(name) and any(PurePosixPath(file).name in str(name) for file in self.files)

    def holds(self, file: str, first: int, last: int) -> bool:
        """Whether one of these lines of a file is the change's own."""
        ranges = self.files.get(file)
        return ranges is not None and (not ranges or any(start <= last and first <= end for start, end in ranges))


def _near(ranges: list[tuple[int, int]], line: int) -> bool:
    return any(first - NEAR <= line <= last + NEAR for first, last in ranges)


def read(repository: Path, merge_base: str, head: str) -> Change:
    between = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", merge_base, head)
    names = git(repository, "diff", "--name-only", "-z", *between).stdout.decode("utf-8", "surrogateescape")
    waiting = iter(name for name in names.split("\0") if name)
    files: dict[str, list[tuple[int, int]]] = {}
    current: list[tuple[int, int]] = []
    for line in git(repository, "diff", "--unified=0", *between).stdout.split(b"\n"):
        if line.startswith(b"diff --git "):  # in the order of the names, which may hold anything but a NUL
            current = files.setdefault(next(waiting), [])
        elif match := HUNK.match(line):
            start, count = int(match[1]), int(match[2] or 1)
            current.append((start, start + max(count, 1) - 1))
    return Change(files)

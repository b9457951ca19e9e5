"""Reads what a lane left behind as a stranger's: no link is followed, no device opened, nothing read without end."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

LARGEST = 2**30  # bytes of one file


def read_bytes(root: Path, relative: str, most: int = LARGEST) -> bytes | None:
    """The bytes of a regular file below `root`, or None where there is none to be read safely."""
    parts = Path(relative).parts
    if not parts or ".." in parts or relative.startswith("/"):
        return None
    folder = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        descriptor = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    finally:
        if folder >= 0:
            os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return None
        return file.read(most)


def read_text(root: Path, relative: str, most: int = LARGEST) -> str | None:
    content = read_bytes(root, relative, most)
    return None if content is None else content.decode("utf-8", "replace")


def files(root: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Regular files below `root` that end so, relative to it, in order."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith(suffixes):
                path = Path(folder) / name
                if path.is_file() and not path.is_symlink():
                    yield path.relative_to(root).as_posix()

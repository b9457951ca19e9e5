"""One process at a time: a lock on a file, which goes with the process, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from greenlane.errors import EnvironmentMissing


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits for the lock. Raises EnvironmentMissing where the system has none."""
    try:
        import fcntl  # here, since Windows lacks it and most verbs need no lock
    except ImportError as error:
        raise EnvironmentMissing(
            f"{path}: this system has no POSIX file locks; use Linux, or WSL on Windows"
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

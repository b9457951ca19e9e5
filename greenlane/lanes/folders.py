"""Where a lane's state lives: `.greenlane/` beside the matrix."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from greenlane.errors import EnvironmentMissing
from greenlane.executors import Folders

OWN = (".git", ".greenlane")  # never part of what a lane reads


@dataclass(frozen=True, slots=True)
class StateFolder:
    """`.greenlane/`: records, and one folder per lane."""

    root: Path

    def prepare(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            (self.root / ".gitignore").write_text("*\n")
        except OSError as error:
            raise EnvironmentMissing(
                f"cannot write {self.root}: {error.strerror}; free space or make the folder writable"
            ) from error

    @property
    def ledger(self) -> Path:
        return self.root / "ledger"

    def lane(self, name: str) -> LaneFolder:
        return LaneFolder(self.root / "lanes" / name, self.root)


@dataclass(frozen=True, slots=True)
class LaneFolder:
    """One lane's folder, on the host."""

    root: Path
    state: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def progress(self) -> Path:
        return self.root / "state.json"

    def seen_from_host(self, source: Path, ccache: Path) -> Folders:
        return Folders(
            source=source,
            build=self.root / "build",
            prefix=self.root / "prefix",
            artifacts=self.root / "artifacts",
            env=self.root / "env",
            home=self.root / "home",
            temporary=self.root / "tmp",
            ccache=ccache,
        )

    def prepare(self, folders: Folders) -> None:
        try:
            for folder in (folders.build, folders.prefix, folders.artifacts, folders.home, self.logs, folders.ccache):
                folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(folders.temporary, ignore_errors=True)
            folders.temporary.mkdir()
        except OSError as error:
            raise EnvironmentMissing(
                f"cannot write {self.root}: {error.strerror}; free space or make the folder writable"
            ) from error

    def forget(self) -> None:
        """Removes what a build made; the environment and the caches stay."""
        for name in ("build", "prefix", "artifacts", "home", "tmp", "logs"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        self.progress.unlink(missing_ok=True)

    @contextmanager
    def locked(self, waiting: str) -> Iterator[None]:
        """One greenlane at a time in a lane's folder; the lock goes with the process, however it ends."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EnvironmentMissing(f"{waiting} is being run by another greenlane; wait for its end") from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            yield

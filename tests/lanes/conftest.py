"""A project of shell commands, so that whole runs take a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
STAGES = {"configure": "echo configured", "build": "echo built > {build}/built", "test": "cat {build}/built"}


@dataclass
class Project:
    """A git repository with a matrix."""

    root: Path

    def write(self, **more: object) -> None:
        """The matrix: one backend `cpu` with `more` in it."""
        backend = {"executor": "host", "require": ["checked", "built", "tested"], "stages": dict(STAGES), "row": "R"}
        backend.update(more)
        document = {"version": 1, "backends": {"cpu": backend}, "lanes": {"products": [{"backend": "cpu"}]}}
        (self.root / "matrix.yaml").write_text(yaml.safe_dump(document))

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message: str = "change") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def command(self, *arguments: str) -> list[str]:
        verb, *rest = arguments
        return [sys.executable, "-m", "greenlane", verb, "--matrix", str(self.root / "matrix.yaml"), *rest]

    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
        return {**clean, "PYTHONPATH": str(ROOT)}

    def greenlane(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=self.root, env={**self.environment(), **environment},
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

    def records(self) -> list[dict[str, object]]:
        """Newest last."""
        files = sorted(
            (self.root / ".greenlane/ledger/records").rglob("*.json"), key=lambda path: path.stat().st_mtime_ns
        )
        return [json.loads(path.read_text()) for path in files]

    def stages(self) -> dict[str, dict[str, object]]:
        return {stage["stage"]: stage for stage in self.records()[-1]["stages"]}  # type: ignore[attr-defined]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.root.mkdir()
    (made.root / ".gitignore").write_text(".greenlane/\n")
    (made.root / "a.cpp").write_text("int a;\n")
    made.git("init", "-q", "-b", "main")
    made.write()
    made.commit("first")
    return made


Make = Callable[..., Project]

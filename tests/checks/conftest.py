"""Keeps the cache of the checks out of the home folder, and gives small projects to check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from greenlane.checks.check import run_checks
from greenlane.checks.report import Report
from greenlane.matrix.model import Lane, Matrix

LANES = (
    Lane(id="cpu", backend="cpu"),
    Lane(id="cuda", backend="cuda", macros={"USE_CUDA": "1"}, vendors=("cuda",), arch="sm_80", wavefront=32),
    Lane(id="rocm", backend="rocm", macros={"USE_HIP": "1"}, vendors=("hip",), arch="gfx90a", wavefront=64),
)
CONSTRAINTS = ("not (USE_CUDA and USE_HIP)",)


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("GREENLANE_PR_BODY", raising=False)
    return folder


Checker = Callable[..., Report]


@pytest.fixture
def check(tmp_path: Path) -> Checker:
    """Writes files and checks them in three lanes: cpu, cuda, rocm."""

    def run(
        files: Mapping[str, str | bytes], checks: Mapping[str, Any] | None = None, lanes: tuple[Lane, ...] = LANES
    ) -> Report:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        return run_checks(Matrix("matrix.yaml", lanes, CONSTRAINTS, checks or {}), tmp_path)

    return run


def said(report: Report) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """Rule, file, line and lanes of each finding."""
    return [(finding.rule, finding.file, finding.line, finding.lanes) for finding in report.findings]

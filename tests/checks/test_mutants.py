"""Faults planted in the fixture by bench/checks/mutants.py: at least 85 of 100 are found, and each kind is planted."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_planted_faults_are_found(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "bench" / "checks" / "mutants.py")
    assert spec is not None and spec.loader is not None
    mutants = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = mutants
    spec.loader.exec_module(mutants)
    port = tmp_path / "port"
    shutil.copytree(ROOT / "tests" / "fixtures" / "port", port, ignore=shutil.ignore_patterns("variants"))
    outcomes, _ = mutants.run(port / "matrix.yaml", port, 200, 1, mutants.Verdicts(None, None), tmp_path / "scratch")
    found = sum(bool(outcome.found) for outcome in outcomes)
    kinds = {outcome.mutant.kind for outcome in outcomes}
    assert kinds == {"argument added", "guard negated", "include moved", "callee renamed"}
    assert found >= 0.85 * len(outcomes)

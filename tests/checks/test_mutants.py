"""Faults planted in the fixture by bench/checks/mutants.py: at least 85 of 100 are found, and each kind is planted."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_planted_faults_are_found() -> None:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "bench" / "checks" / "mutants.py")
    assert spec is not None and spec.loader is not None
    mutants = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = mutants
    spec.loader.exec_module(mutants)
    port = ROOT / "tests" / "fixtures" / "port"
    results = mutants.run(port / "matrix.yaml", port, count=200, seed=1, verbose=False)
    found = sum(count for (_, hit), count in results.items() if hit)
    assert {kind for kind, _ in results} == {"argument added", "guard negated", "include moved", "callee renamed"}
    assert found >= 0.85 * sum(results.values())

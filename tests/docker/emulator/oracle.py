"""AMD's pseudo-code, as the package tinygrad carries it, brought into the container; and what a run of it must say."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from emulator_box import Box

FOLDER = "tinygrad/runtime/autogen/amd"


def bring(box: Box) -> str:
    """Copies the tables alone: the package around them is not needed. The folder that holds them."""
    found = importlib.util.find_spec("tinygrad")
    if found is None or found.origin is None:
        pytest.skip("no tinygrad, which carries AMD's pseudo-code: `nox -s tests-docker` installs it")
    home = Path(found.origin).parents[1]
    tables = [
        path.relative_to(home) for path in (home / FOLDER).rglob("*.py") if path.stem in ("common", "enum", "str_pcode")
    ]
    packages = {parent for path in tables for parent in path.parents if parent != Path()}
    script = "; ".join(
        f"mkdir -p /scratch/oracle/{one} && touch /scratch/oracle/{one}/__init__.py" for one in sorted(packages)
    )
    subprocess.run(["docker", "exec", box.name, "sh", "-c", script], check=True)
    for path in tables:
        subprocess.run(["docker", "cp", "-q", str(home / path), f"{box.name}:/scratch/oracle/{path}"], check=True)
    return "/scratch/oracle"


def compared(box: Box, arch: str) -> dict[str, Any]:
    script = "/src/tests/docker/emulator/check_pcode.py"
    done = box.emulate(arch, "python3", script, "--arch", arch, "--oracle", bring(box))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any], at_least: int) -> None:
    """Every instruction was tried on many operands, and agreed."""
    results = found["results"]
    assert [result for result in results if "agreed" not in result] == []
    assert len(results) >= at_least
    assert all(result["agreed"] >= 16 for result in results)

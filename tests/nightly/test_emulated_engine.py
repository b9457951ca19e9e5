"""256 tokens on gfx1100 under the emulator: the lane's own gates on the workload of its `long` variant."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[2]
FAULTS = ROOT / "tests" / "emulator" / "faults"


def greenlane(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "greenlane", *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """This repository at its commit, where lanes may run and faults may be planted."""
    folder = tmp_path_factory.mktemp("emulated")
    for path in (folder, *list(folder.parents)[:2]):
        path.chmod(0o755)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "tree")], check=True)
    greenlane(folder / "tree", "images", "seed")
    yield folder / "tree"
    shutil.rmtree(folder, ignore_errors=True)


def test_256_tokens_of_each_prompt_are_the_references(tree: Path) -> None:
    done = greenlane(tree, "run", "rocm-gfx1100-long")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    report = json.loads(greenlane(tree, "report", "--format", "json").stdout)
    record = next(record for record in report["lanes"] if record["lane"] == "rocm-gfx1100-long")
    assert record["evidence"] == ["checked", "built", "emulated", "reached", "exact"]
    exact = next(stage for stage in record["stages"] if stage["stage"] == "exact")
    assert {one["name"]: one["positions"] for one in exact["measurements"]["comparisons"]} == {
        "mirror": 1024, "reference": 1024, "golden": 256,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("removed-barrier", "race: "),
        ("warp-of-64", "cross-lane read of lane 32 in a wave of 32"),
        ("store-by-one", "0 bytes past the end of an allocation"),
        ("never-dispatched", "combine must be reached and was never launched: dead code in this lane"),
        ("wrong-row", "diverges at index"),
    ],
)
def test_a_planted_fault_turns_the_lane_red(tree: Path, fault: str, message: str) -> None:
    patch = str(FAULTS / f"{fault}.patch")
    subprocess.run(["git", "apply", patch], cwd=tree, check=True)
    try:
        done = greenlane(tree, "run", "rocm-gfx1100")
    finally:
        subprocess.run(["git", "apply", "--reverse", patch], cwd=tree, check=True)
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr
    assert message in done.stdout + done.stderr

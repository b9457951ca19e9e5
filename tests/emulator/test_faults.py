"""The faults that are planted to prove the ROCm lane still apply to the sources that they break."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from greenlane.matrix import load
from greenlane.matrix.gates import GatesConfig

ROOT = Path(__file__).parents[2]
FAULTS = sorted((Path(__file__).parent / "faults").glob("*.patch"))


@pytest.mark.parametrize("patch", FAULTS, ids=lambda path: path.stem)
def test_a_planted_fault_applies_and_changes_one_line(patch: Path, tmp_path: Path) -> None:
    changed = [line for line in patch.read_text().splitlines() if line.startswith("+++ ")]
    assert len(changed) == 1
    name = changed[0].removeprefix("+++ b/")
    target = tmp_path / name
    target.parent.mkdir(parents=True)
    shutil.copy(ROOT / name, target)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, after = (ROOT / name).read_text().splitlines(), target.read_text().splitlines()
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_the_rocm_lane_names_a_fault_for_each_of_its_gates() -> None:
    lane = load(ROOT / "matrix.yaml").lane("rocm-gfx1100")
    assert lane is not None
    gates = GatesConfig.model_validate(dict(lane.gates))
    assert gates.reach and gates.reach.prove and gates.exact and gates.exact.prove
    named = {gates.reach.prove.patch, gates.exact.prove.patch}
    assert named <= {path.relative_to(ROOT).as_posix() for path in FAULTS}

"""Every instruction of the models, on random operands and edge values, against NumPy."""

from __future__ import annotations

import json

import pytest
from emulator_box import Box

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1151", "gfx1201", "gfx942"])
def test_instructions_compute_what_the_models_do(box: Box, arch: str) -> None:
    script = "/src/tests/docker/emulator/check_instructions.py"
    done = box.emulate(arch, "python3", script, "--arch", arch)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert len(results) > 90
    assert [result for result in results if result["difference"] > result["allowed"]] == []

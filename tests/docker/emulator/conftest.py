"""The ROCm image of this machine, and a container in it for the whole session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the tests here import emulator_box

from emulator_box import ROOT, Box

from greenlane.executors.daemon import Daemon
from greenlane.lanes.images import images_of
from greenlane.matrix import load

LANE = "rocm-gfx1100"


def rocm_image() -> str:
    """GREENLANE_TEST_ROCM_IMAGE, else the image of this repository's ROCm lanes, built where it is missing."""
    if named := os.environ.get("GREENLANE_TEST_ROCM_IMAGE"):
        return named
    lane = load(ROOT / "matrix.yaml").lane(LANE)
    assert lane is not None
    for action in ("seed", "build"):
        command = [sys.executable, "-m", "greenlane", "images", action, LANE]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    [tag] = images_of([lane], Path(ROOT))
    return tag


@pytest.fixture(scope="session")
def box(daemon: Daemon) -> Iterator[Box]:
    image = rocm_image()
    run = [
        "docker",
        "run",
        "-d",
        "--rm",
        "--network=none",
        "-v",
        f"{ROOT}:/src:ro",
        "--entrypoint",
        "sleep",
        image,
        "3600",
    ]
    name = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["docker", "exec", name, "mkdir", "-p", "/scratch"], check=True)
    yield Box(name)
    subprocess.run(["docker", "kill", name], capture_output=True, check=False)

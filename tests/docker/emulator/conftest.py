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


def rocm_image() -> str | None:
    """GREENLANE_TEST_ROCM_IMAGE, else a local image whose name speaks of ROCm and that has hipcc."""
    if named := os.environ.get("GREENLANE_TEST_ROCM_IMAGE"):
        return named
    try:
        listed = subprocess.run(
            ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    for image in listed.stdout.split():
        probe = ["docker", "run", "--rm", "--network=none", "--entrypoint", "sh", image, "-c", "command -v hipcc"]
        if "rocm" in image and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return image
    return None


@pytest.fixture(scope="session")
def box() -> Iterator[Box]:
    image = rocm_image()
    if image is None:
        pytest.skip("no ROCm image on this machine: `greenlane images build rocm-gfx1100` makes one")
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

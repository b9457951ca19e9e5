"""The table of targets against the compilers in the lanes' images."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from greenlane.executors.daemon import Daemon
from greenlane.images.build import ensure
from greenlane.images.inputs import inputs
from greenlane.matrix import load
from greenlane.matrix.targets import Target, compiler_is_unfit, targets

ROOT = Path(__file__).parents[2]
BEFORE_HIP = re.compile(r"gfx[678]")  # cards that ROCm never supported; the table leaves them out

MENTIONED = {"clang": set[str](), "nvcc": {"sm_70"}}  # by ptxas's help in passing; CUDA 13 compiles for it no more


def said(daemon: Daemon, lane: str, command: str, state: Path) -> set[str]:
    """The target names that a command in the lane's image prints."""
    found = load(ROOT / "matrix.yaml").lane(lane)
    assert found is not None and found.image is not None
    image, _ = ensure(daemon.client, daemon.base_url, inputs(found.image, ROOT), state, print)
    container = daemon.client.create_container(image, ["sh", "-c", f"{command} 2>&1"])["Id"]
    try:
        daemon.client.start(container)
        daemon.client.wait(container)
        printed = daemon.client.logs(container).decode()
    finally:
        daemon.client.remove_container(container, force=True)
    return set(re.findall(r"\b(?:gfx[0-9][\w-]*|sm_\d+[af]?)\b", printed))


@pytest.mark.parametrize(
    ("lane", "command", "compiler", "version"),
    [
        ("rocm-gfx1100", "clang-21 --target=amdgcn -print-supported-cpus", "clang", "21.1"),
        ("cuda-sm_90", "ptxas --help", "nvcc", "13.5.37"),
    ],
)
def test_the_table_knows_exactly_what_the_compiler_knows(
    daemon: Daemon, tmp_path: Path, lane: str, command: str, compiler: str, version: str
) -> None:
    compare(daemon, tmp_path, lane, command, compiler, version)


def compare(daemon: Daemon, state: Path, lane: str, command: str, compiler: str, version: str) -> None:
    names = {name for name in said(daemon, lane, command, state) if not BEFORE_HIP.match(name) or name == "gfx803"}
    vendor = "amd" if compiler == "clang" else "nvidia"
    assert names - MENTIONED[compiler] == {
        target.name for target in targets().values() if target.vendor == vendor and fits(target, compiler, version)
    }


def fits(target: Target, compiler: str, version: str) -> bool:
    return compiler in target.first and compiler_is_unfit(target, compiler, version) is None

"""Lanes of this repository in their real images, one per backend, and the traps of compiler caches."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from greenlane.executors.daemon import Daemon
from tests.lanes.conftest import Project

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def clone(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """This repository at its commit: a still tree, which nobody edits while lanes run."""
    folder = tmp_path_factory.mktemp("clone")
    for path in (folder, *list(folder.parents)[:2]):
        path.chmod(0o755)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "project")], check=True)
    project = Project(folder / "project")
    seeded = project.greenlane("images", "seed")
    assert seeded.returncode == 0, seeded.stdout + seeded.stderr
    yield project
    shutil.rmtree(folder, ignore_errors=True)


def run(project: Project, *arguments: str) -> dict[str, Any]:
    """Runs lanes however long they take; the last record."""
    done = subprocess.run(
        project.command("run", *arguments), cwd=project.root, env=project.environment(), capture_output=True, text=True
    )
    assert done.returncode in (0, 4), done.stdout[-4000:] + done.stderr
    return project.records()[-1]


def build_of(record: dict[str, Any]) -> dict[str, Any]:
    return next(stage["measurements"] for stage in record["stages"] if stage["stage"] == "build")


@pytest.mark.parametrize(
    ("lane", "compiler", "arch", "figures"),
    [
        ("rocm-gfx1100", "clang (HIP)", "gfx1100", {"vgprs", "sgprs", "lds_bytes", "scratch_bytes", "vgpr_spills"}),
        ("cuda-sm_90", "nvcc", "sm_90", {"registers", "lds_bytes", "scratch_bytes", "spill_store_bytes"}),
    ],
)
def test_a_gpu_lane_is_built_with_what_its_objects_really_hold(
    clone: Project, lane: str, compiler: str, arch: str, figures: set[str]
) -> None:
    record = run(clone, lane, "--until", "build")
    assert record["evidence"] == ["checked", "built"]
    assert len(record["digests"]["image"]) == 64
    assert record["toolchain"]["compiler"] == compiler and record["toolchain"]["version"]
    measured = build_of(record)
    assert {name.rstrip("a") for name in measured["architectures"] if not name.startswith("compute")} == {arch}
    kernels = next(found for name, found in measured["kernels"].items() if name.rstrip("a") == arch)
    assert len(kernels) > 20
    assert all(figures <= set(kernel) for kernel in kernels.values())
    commands = clone.root / f".greenlane/lanes/{lane}/artifacts/compile_commands.json"
    assert len(json.loads(commands.read_text())) > 20
    again = run(clone, lane, "--until", "build", "--fresh")
    assert build_of(again)["ccache"]["hit_rate"] >= 0.95
    assert build_of(again)["kernels"] == measured["kernels"], "a cache must repeat what the compiler said"


def test_the_rocm_lane_runs_to_its_end_without_a_card(clone: Project) -> None:
    record = run(clone, "rocm-gfx1100")
    assert record["outcome"] == "pass"
    assert record["evidence"] == ["checked", "built", "tested", "emulated", "reached", "exact"]
    stages = {stage["stage"]: stage["measurements"] for stage in record["stages"]}
    for name in ("test", "reach", "exact"):
        assert stages[name]["emulator"]["arch"] == "gfx1100"
        assert len(stages[name]["emulator"]["opcodes"]) > 100
    assert stages["reach"]["on"]["witness"] == "emulator"
    compared = {one["name"]: one for one in stages["exact"]["comparisons"]}
    assert {name: one["positions"] for name, one in compared.items()} == dict.fromkeys(
        ("mirror", "reference", "golden"), 128
    )
    assert compared["mirror"]["equal_positions"] == 128


def test_a_cpu_lane_is_built_by_the_newest_compiler(clone: Project) -> None:
    record = run(clone, "cpu-newest-gcc", "--until", "build")
    assert record["evidence"] == ["checked", "built"]
    assert record["toolchain"]["compiler"] == "gcc" and record["toolchain"]["version"].startswith("16.")


@pytest.fixture
def hip(tmp_path: Path, daemon: Daemon) -> Project:
    """A HIP kernel whose shared memory is as large as a header says that only the device pass includes."""
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    project = Project(tmp_path / "project")
    shutil.copytree(ROOT / "dockerfiles", project.root / "dockerfiles")
    (project.root / ".gitignore").write_text(".greenlane/\n")
    (project.root / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(x LANGUAGES CXX HIP)\n"
        "add_library(k OBJECT k.hip)\nset_source_files_properties(k.hip PROPERTIES LANGUAGE HIP)\n"
    )
    (project.root / "k.hip").write_text(
        '#include <hip/hip_runtime.h>\n#ifdef __HIP_DEVICE_COMPILE__\n#include "size.h"\n#else\n'
        "constexpr int kSize = 1;\n#endif\n"
        "__global__ void k(float* x) {\n  __shared__ float s[kSize];\n  s[threadIdx.x] = x[threadIdx.x];\n"
        "  __syncthreads();\n  x[threadIdx.x] = s[kSize - 1 - threadIdx.x];\n}\n"
    )
    (project.root / "size.h").write_text("constexpr int kSize = 64;\n")
    project.git("init", "-q", "-b", "main")
    project.write(
        executor="docker", dockerfile="dockerfiles/rocm.Dockerfile", require=["checked", "built"],
        defines={
            "CMAKE_HIP_COMPILER": "clang++-21", "CMAKE_HIP_ARCHITECTURES": "gfx1100",
            "CMAKE_HIP_COMPILER_LAUNCHER": "ccache",
        },
        stages={"configure": "cmake -S {source} -B {build} -G Ninja {cmake_defines}", "build": "cmake --build {build}"},
    )  # fmt: skip
    project.commit()
    return project


def shared_memory(project: Project) -> int:
    kernels = build_of(run(project, "cpu"))["kernels"]["gfx1100"]
    return int(next(iter(kernels.values()))["lds_bytes"])


def test_an_edit_to_a_device_only_header_rebuilds_what_includes_it(hip: Project) -> None:
    assert shared_memory(hip) == 256
    (hip.root / "size.h").write_text("constexpr int kSize = 128;\n")
    assert shared_memory(hip) == 512, "ninja sees no dependency, and the cache must not answer with the old object"
    (hip.root / "size.h").write_text("constexpr int kSize = 64;\n")
    again = build_of(run(hip, "cpu", "--fresh"))
    assert next(iter(again["kernels"]["gfx1100"].values()))["lds_bytes"] == 256
    assert again["ccache"] == {"hits": 1, "misses": 0, "hit_rate": 1.0}, "the first object comes back out of the cache"

"""Architectures and kernel figures out of objects that real compilers made."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from greenlane.lanes import objects

HERE = Path(__file__).parent / "objects"
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5scalePff' for 'sm_90a'
ptxas info    : Function properties for _Z5scalePff
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compiling entry function '_Z5scalePff' for 'sm_80'
ptxas info    : Function properties for _Z5scalePff
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 14 registers, used 1 barriers, 1024 bytes smem, 364 bytes cmem[0]
"""


@pytest.fixture
def build(tmp_path: Path) -> Path:
    return tmp_path


def test_each_architecture_of_a_hip_object_is_found_with_its_kernels(build: Path) -> None:
    shutil.copy(HERE / "scale.hip.o", build)
    found = objects.survey(build, [])
    assert found["architectures"] == ["gfx1100", "gfx942"]
    kernel = found["kernels"]["gfx1100"]["_Z5scalePff"]
    assert kernel["vgprs"] == 4 and kernel["sgprs"] == 18 and kernel["lds_bytes"] == 1024
    assert kernel["scratch_bytes"] == 0 and kernel["vgpr_spills"] == 0 and kernel["wavefront"] == 32
    assert found["kernels"]["gfx942"]["_Z5scalePff"]["wavefront"] == 64


def test_each_architecture_of_a_compressed_cuda_object_is_found(build: Path) -> None:
    shutil.copy(HERE / "scale.cuda.o", build)
    assert objects.survey(build, [])["architectures"] == ["compute_80", "sm_80", "sm_90a"]


def test_what_ptxas_says_joins_the_architectures_that_are_there(build: Path) -> None:
    shutil.copy(HERE / "scale.cuda.o", build)
    kernels = objects.survey(build, PTXAS.splitlines())["kernels"]
    assert kernels["sm_90a"]["_Z5scalePff"]["registers"] == 12
    assert kernels["sm_80"]["_Z5scalePff"] == {
        "registers": 14,
        "lds_bytes": 1024,
        "scratch_bytes": 16,
        "spill_store_bytes": 8,
        "spill_load_bytes": 4,
    }


def test_figures_of_objects_that_were_not_compiled_again_are_kept(build: Path) -> None:
    shutil.copy(HERE / "scale.cuda.o", build)
    objects.survey(build, PTXAS.splitlines())
    assert objects.survey(build, [])["kernels"]["sm_80"]["_Z5scalePff"]["registers"] == 14


def test_a_kernel_that_no_object_holds_any_more_is_dropped(build: Path) -> None:
    shutil.copy(HERE / "scale.cuda.o", build)
    objects.survey(build, PTXAS.replace("_Z5scalePff", "_Z4gonePf").splitlines())
    assert "_Z4gonePf" not in objects.survey(build, [])["kernels"].get("sm_80", {})


def test_what_cmake_compiled_to_probe_the_compiler_is_no_part_of_the_build(build: Path) -> None:
    probe = build / "CMakeFiles/4.3.4/CompilerIdCUDA"
    probe.mkdir(parents=True)
    shutil.copy(HERE / "scale.cuda.o", probe)
    assert objects.survey(build, []) == {}


def test_an_object_without_device_code_says_nothing(build: Path) -> None:
    (build / "a.o").write_bytes(b"\x7fELF" + bytes(60))
    (build / "b.o").write_bytes(b"no object")
    assert "architectures" not in objects.survey(build, [])


def test_a_link_out_of_the_build_tree_is_not_followed(build: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "scale.hip.o"
    shutil.copy(HERE / "scale.hip.o", outside)
    (build / "scale.hip.o").symlink_to(outside)
    assert objects.survey(build, []) == {}


@pytest.mark.parametrize("name", ["scale.hip.o", "scale.cuda.o"])
def test_damaged_objects_are_named_and_never_crash(build: Path, name: str) -> None:
    whole = (HERE / name).read_bytes()
    dice = random.Random(4)
    for _ in range(300):
        data = bytearray(whole[: dice.randrange(64, len(whole))] if dice.random() < 0.3 else whole)
        for _ in range(dice.randrange(1, 40)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        (build / name).write_bytes(data)
        found = objects.survey(build, [])
        assert set(found) <= {"architectures", "kernels", "unread_objects"}

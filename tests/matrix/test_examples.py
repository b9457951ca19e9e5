"""The matrices of examples/ and of this repository load, and hold the lanes that they are there to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane import matrix
from greenlane.matrix.verify import stages_of

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = {
    "ggml-like": {"cpu", "cpu-blas", "cuda-sm_90", "cuda-sm_90-12.8", "hip-gfx1100-6.4", "hip-gfx1201"},
    "vllm-like": {"cuda-wheel", "rocm-gfx942", "rocm-gfx942-6.4"},
    "header-only": {"cpu", "cpu-clang", "cpu-cxx20", "cpu-no-exceptions"},
}
OURS = {
    "cpu", "cpu-clang", "cpu-newest-gcc", "cpu-sanitize", "cpu-arm64", "cuda-sm_90", "cuda-fat",
    "rocm-gfx1100", "rocm-gfx1151", "rocm-gfx1201", "rocm-gfx942", "windows-msvc",
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_loads_and_has_its_lanes(name: str) -> None:
    loaded = matrix.load(ROOT / "examples" / name / "matrix.yaml")
    assert EXAMPLES[name] <= {lane.id for lane in loaded.lanes}


def test_every_folder_of_examples_is_tested() -> None:
    assert {path.parent.name for path in (ROOT / "examples").glob("*/matrix.yaml")} == set(EXAMPLES)


def test_the_excluded_lane_of_an_example_does_not_exist() -> None:
    loaded = matrix.load(ROOT / "examples" / "ggml-like" / "matrix.yaml")
    assert loaded.lane("hip-gfx1201-6.4") is None


def test_this_repository_has_its_lanes_each_with_row_and_require() -> None:
    loaded = matrix.load(ROOT / "matrix.yaml")
    assert {lane.id for lane in loaded.lanes} >= OURS
    for lane in loaded.lanes:
        assert lane.row in ("BACKEND-CPU", "BACKEND-CUDA", "BACKEND-ROCM"), lane.id
        assert {"checked", "built"} <= set(lane.require), lane.id
        assert "build" in stages_of(lane), lane.id


def test_what_a_lane_of_this_repository_names_exists() -> None:
    for lane in matrix.load(ROOT / "matrix.yaml").lanes:
        if lane.image is not None:
            assert (ROOT / lane.image.dockerfile).is_file(), lane.id
        for folder in lane.include_dirs:
            assert (ROOT / folder).is_dir(), lane.id


def test_windows_is_a_world_of_its_own_and_is_not_required_here() -> None:
    loaded = matrix.load(ROOT / "matrix.yaml")
    lane = loaded.lane("windows-msvc")
    assert lane is not None
    assert lane.macros.keys() == {"_WIN32", "_MSC_VER", "_M_X64"}
    assert lane.hosted_only
    assert lane.id not in loaded.required


def test_the_fat_lane_is_built_for_three_generations() -> None:
    lane = matrix.load(ROOT / "matrix.yaml").lane("cuda-fat")
    assert lane is not None
    assert lane.archs == ("sm_80", "sm_90a", "sm_100a")

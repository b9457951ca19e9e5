"""`greenlane init` proposes a valid matrix from what a project's files say, also where they say nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from greenlane import matrix
from greenlane.cli import main
from greenlane.lanes.init import matrix_of
from greenlane.lanes.survey import survey
from greenlane.matrix.loading import compile_matrix
from tests.lanes.conftest import Project

PORT = {
    "CMakeLists.txt": (
        'option(TINY_CUDA "CUDA" OFF)\noption(TINY_CUDA_FORCE_MMQ "x" OFF)\noption(TINY_HIP "HIP" OFF)\n'
        "set(CMAKE_CUDA_ARCHITECTURES sm_80)\nenable_testing()\n"
    ),
    "src/main.cpp": "#ifdef TINY_USE_CUDA\n#endif\n#if defined(TINY_USE_CUDA) || defined(TINY_USE_HIP)\n#endif\n",
    "include/vt/cuda/launch.h": "",
    "include/vt/rocm/launch.h": "",
    "src/cuda/k.cu": "",
    "ci/cuda.Dockerfile": "FROM x\n",
}
NAMES = (
    *("CMakeLists.txt", "setup.py", "Makefile", "pyproject.toml", "Dockerfile.rocm", "sub/cpu.dockerfile", "b.c"),
    *("a b.cpp", "{x}.h", "x\ny.h", "#.h", "'q'.hpp", "cuda/k.cu", "cuda/k.h", "src/hip/é.hip", "rocm/k.h"),
)
TEXTS = (
    *("", "option(USE_CUDA)\n", "option(A_HIP_B X Y)\noption(Z_ROCM)", "#if USE_CUDA\n#elif USE_ROCM\n", "\x00\xff"),
    *("gfx942", "gfx9999 sm_1", "getenv('ROCM_X')", "scikit_build_core", "#ifdef X_HIP_H_\n"),
)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_cmake_project_gets_its_backends_macros_and_mirrors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "-C", str(write(tmp_path, PORT))]) == 0
    assert "cpu, cuda-sm_80, rocm-gfx1100" in capsys.readouterr().out
    loaded = matrix.load(tmp_path / "matrix.yaml")
    cpu, cuda, rocm = loaded.lanes
    assert (cpu.macros, cuda.macros, rocm.macros) == ({}, {"TINY_USE_CUDA": "1"}, {"TINY_USE_HIP": "1"})
    assert cuda.defines == {"TINY_CUDA": "ON", "TINY_HIP": "OFF"}
    assert (cuda.vendors, rocm.vendors, rocm.device) == (("cuda",), ("hip",), "amd")
    assert cuda.image is not None
    assert cuda.image.dockerfile == "ci/cuda.Dockerfile"
    assert set(cpu.stages) == {"configure", "build", "test"}
    assert loaded.constraints == ("at_most_one(TINY_USE_CUDA, TINY_USE_HIP)",)
    assert loaded.checks["mirrors"][0]["left"] == "include/vt/cuda/*.h"
    assert loaded.checks["mirrors"][0]["right"] == "include/vt/rocm/*.h"
    assert "greenlane.nox import lanes" in (tmp_path / "noxfile.py").read_text()


def test_an_empty_folder_gets_a_valid_matrix_that_is_honestly_red(tmp_path: Path) -> None:
    assert main(["init", "-C", str(tmp_path)]) == 0
    (lane,) = matrix.load(tmp_path / "matrix.yaml").lanes
    assert "exit 1" in lane.stages["build"][0]


def test_headers_alone_are_checked_by_the_compiler(tmp_path: Path) -> None:
    write(tmp_path, {"include/lib.hpp": "", "include/it's.h": ""})
    assert main(["init", "-C", str(tmp_path)]) == 0
    (lane,) = matrix.load(tmp_path / "matrix.yaml").lanes
    assert "-fsyntax-only -I {source}/include" in lane.stages["build"][0]
    assert "{source}/include/lib.hpp" in lane.stages["build"][0]


def test_a_python_extension_is_built_by_pip_and_switched_by_its_environment(tmp_path: Path) -> None:
    setup = 'import os\nfrom setuptools import Extension\nif os.environ.get("USE_ROCM"): pass\n'
    write(tmp_path, {"setup.py": setup, "csrc/a.cpp": "#ifdef USE_ROCM\n#endif\n"})
    assert main(["init", "-C", str(tmp_path)]) == 0
    rocm = matrix.load(tmp_path / "matrix.yaml").lane("rocm-gfx1100")
    assert rocm is not None
    assert (rocm.env, rocm.macros) == ({"USE_ROCM": "1"}, {"USE_ROCM": "1"})
    assert "pip install" in rocm.stages["build"][0]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"matrix.yaml": "mine", "noxfile.py": "mine"})
    assert main(["init", "-C", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    (tmp_path / "matrix.yaml").unlink()
    assert main(["init", "-C", str(tmp_path)]) == 0
    assert (tmp_path / "noxfile.py").read_text() == "mine"
    assert 'lanes("matrix.yaml")' in capsys.readouterr().out


def test_make_builds_a_copy_so_that_the_tree_stays_as_it_is(project: Project) -> None:
    (project.root / "matrix.yaml").unlink()
    write(project.root, {"Makefile": "all:\n\tcat a.cpp > made\n"})
    assert main(["init", "-C", str(project.root)]) == 0
    project.commit()
    done = project.greenlane("run", "cpu")
    assert done.returncode == 0, done.stdout
    assert (project.root / ".greenlane/lanes/cpu/build/made").exists() and not (project.root / "made").exists()


def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "-C", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "CMakeLists.txt").symlink_to("/dev/zero")
    assert survey(tmp_path).build == "unknown"


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_tree_holds_the_matrix_is_valid(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    write(tmp_path, {name: chance.choice(TEXTS) for name in chance.sample(NAMES, chance.randrange(len(NAMES)))})
    assert compile_matrix(matrix_of(survey(tmp_path)).encode(), "matrix.yaml").matrix.lanes

"""--changed-since: a change selects what it may affect, and whatever is uncertain."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from greenlane.errors import MatrixError
from greenlane.matrix.changed import Choice, choose

MATRIX = """\
backends:
  cpu: {sources: ["core/**", "cpu/**"], include_dirs: [include], paths: [setup.py]}
  gpu: {sources: ["core/**", "gpu/**"], include_dirs: [include], dockerfile: docker/gpu.Dockerfile}
  open: {paths: [open.py]}
lanes: {products: [{backend: cpu}, {backend: gpu}, {backend: open}]}
stages: {build: "make FLAGS=tools/flags.txt"}
irrelevant: ["docs/**", "*.md"]
"""
FILES = {
    "core/main.cpp": '#include "core.h"\n',
    "include/core.h": "#pragma once\n",
    "cpu/cpu.cpp": '#include "cpu_only.h"\n#include <vector>\n',
    "include/cpu_only.h": '#include \\\n "deep/inner.h"\n',
    "include/deep/inner.h": "",
    "gpu/gpu.cu": '#include "gone.h"\n',
    "docker/gpu.Dockerfile": "FROM x\n",
    "tools/flags.txt": "",
    "tools/unknown.txt": "",
    "docs/a.cpp": "",
    "README.md": "",
    "open.py": "",
    "setup.py": "",
    "lonely.h": "",
}


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {**FILES, "matrix.yaml": MATRIX}.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    root = tmp_path / "project"
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


def choices(project: Path, rev: str = "HEAD") -> dict[str, Choice]:
    return {choice.lane: choice for choice in choose(project / "matrix.yaml", rev)}


def selected(project: Path) -> set[str]:
    return {lane for lane, choice in choices(project).items() if choice.selected}


def edit(project: Path, name: str) -> None:
    path = project / name
    path.write_text(path.read_text() + "\n")


@pytest.mark.parametrize(
    ("name", "lanes"),
    [
        ("core/main.cpp", {"cpu", "gpu", "open"}),
        ("include/core.h", {"cpu", "gpu", "open"}),
        ("cpu/cpu.cpp", {"cpu", "open"}),
        ("include/cpu_only.h", {"cpu", "open"}),
        ("include/deep/inner.h", {"cpu", "open"}),
        ("gpu/gpu.cu", {"gpu", "open"}),
        ("docker/gpu.Dockerfile", {"gpu"}),
        ("tools/flags.txt", {"cpu", "gpu", "open"}),
        ("tools/unknown.txt", {"cpu", "gpu", "open"}),
        ("lonely.h", {"cpu", "gpu", "open"}),
        ("docs/a.cpp", set()),
        ("README.md", set()),
        ("open.py", {"open"}),
        ("setup.py", {"cpu"}),
    ],
)
def test_a_changed_file_selects_the_lanes_it_may_affect(project: Path, name: str, lanes: set[str]) -> None:
    edit(project, name)
    assert selected(project) == lanes


def test_nothing_changed_selects_nothing(project: Path) -> None:
    assert selected(project) == set()
    assert choices(project)["cpu"].why == "no file that matters was changed"


def test_each_choice_says_why(project: Path) -> None:
    edit(project, "include/deep/inner.h")
    found = choices(project)
    assert found["cpu"].why == "include/deep/inner.h is included by what it compiles"
    assert found["gpu"].why == "none of the 1 changed files affects it"
    assert found["open"].why == "include/deep/inner.h may be compiled by it: it names no sources"


def test_a_new_header_that_an_include_was_missing_selects_its_lane(project: Path) -> None:
    (project / "elsewhere").mkdir()
    (project / "elsewhere" / "gone.h").write_text("")
    assert "gpu" in selected(project)


def test_a_deleted_header_selects_who_included_it(project: Path) -> None:
    (project / "include" / "cpu_only.h").unlink()
    assert "cpu" in selected(project)


def test_a_computed_include_may_reach_any_header(project: Path) -> None:
    (project / "gpu" / "gpu.cu").write_text("#include HEADER\n")
    git(project, "commit", "-qam", "computed")
    edit(project, "include/cpu_only.h")
    assert "gpu/gpu.cu, which computes a name" in choices(project)["gpu"].why


def test_a_changed_matrix_selects_the_lanes_whose_digest_changed(project: Path) -> None:
    path = project / "matrix.yaml"
    path.write_text(path.read_text().replace("gpu: {", "gpu: {timeout: 7m, "))
    assert selected(project) == {"gpu"}
    path.write_text("# a remark\n" + MATRIX)
    assert selected(project) == set()


def test_an_old_matrix_that_cannot_be_read_selects_every_lane(project: Path) -> None:
    (project / "matrix.yaml").write_text("broken: [\n")
    git(project, "commit", "-qam", "broken")
    (project / "matrix.yaml").write_text(MATRIX)
    assert selected(project) == {"cpu", "gpu", "open"}


def test_the_change_is_counted_from_the_merge_base(project: Path) -> None:
    git(project, "checkout", "-qb", "topic")
    edit(project, "setup.py")
    git(project, "commit", "-qam", "topic")
    git(project, "checkout", "-q", "main")
    edit(project, "gpu/gpu.cu")
    git(project, "commit", "-qam", "main moved on")
    git(project, "checkout", "-q", "topic")
    assert {lane for lane, choice in choices(project, "main").items() if choice.selected} == {"cpu"}


def test_files_outside_the_matrix_folder_are_uncertain(project: Path) -> None:
    sub = project / "sub"
    sub.mkdir()
    (sub / "matrix.yaml").write_text("backends: {x: {sources: ['a/**']}}\nlanes: {products: [{backend: x}]}\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "sub")
    edit(project, "setup.py")
    (choice,) = choose(sub / "matrix.yaml", "HEAD")
    assert choice.selected
    assert "lies outside the matrix's folder" in choice.why


def test_an_unknown_revision_is_refused(project: Path) -> None:
    with pytest.raises(MatrixError, match="git knows no commit 'nowhere' here"):
        choices(project, "nowhere")
    with pytest.raises(MatrixError, match="is no revision"):
        choices(project, "--output=x")


def test_no_repository_is_an_error_and_no_empty_answer(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    with pytest.raises(MatrixError, match="--changed-since"):
        choices(tmp_path)

"""`greenlane doctor` says how far each lane gets on a machine, and what would take it further."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane.cli import main
from greenlane.lanes.doctor import Machine, idle_globs, prospect, report
from greenlane.matrix.model import Image, Lane, Matrix

BARE = Machine(system="Linux x86_64", daemon=None, cards=frozenset(), tools=frozenset({"g++"}), root=Path("/nowhere"))
HOST = Lane(
    id="cpu",
    backend="cpu",
    compiler="gcc",
    executor="host",
    stages={"build": ("cmake --build {build}",), "test": ("x",)},
)


def machine(tmp_path: Path, **changes: object) -> Machine:
    (tmp_path / "Dockerfile").write_text("FROM x\n")
    return Machine(**{**{name: getattr(BARE, name) for name in Machine.__slots__}, "root": tmp_path, **changes})  # type: ignore[arg-type]


def gpu(**changes: object) -> Lane:
    settings = {"device": "amd", "image": Image("Dockerfile"), "executor": "docker", "stages": {"test": ("t",)}}
    return Lane(id="rocm", backend="rocm", **{**settings, **changes})  # type: ignore[arg-type]


def test_a_tool_that_the_host_lacks_is_named() -> None:
    assert prospect(HOST, BARE).lacking == ("cmake",)
    assert prospect(HOST, BARE).build == "no"


def test_what_the_set_up_installs_is_not_lacking() -> None:
    stages = {
        "image": ("{python} -m pip install cmake ninja",),
        "build": ("cmake -G Ninja --build {build}",),
        "test": ("x",),
    }
    found = prospect(Lane(id="cpu", backend="cpu", compiler="gcc", executor="host", stages=stages), BARE)
    assert (found.build, found.run, found.lacking) == ("host", "host", ())


def test_a_docker_lane_without_a_daemon_lacks_it(tmp_path: Path) -> None:
    assert prospect(gpu(), machine(tmp_path)).lacking == ("a container daemon",)


def test_a_missing_dockerfile_is_named(tmp_path: Path) -> None:
    found = prospect(gpu(image=Image("gone/Dockerfile")), machine(tmp_path, daemon="unix:///s"))
    assert found.lacking == ("the file gone/Dockerfile",)


def test_a_lane_that_needs_a_card_is_built_but_not_run_without_one(tmp_path: Path) -> None:
    found = prospect(gpu(), machine(tmp_path, daemon="unix:///s"))
    assert (found.build, found.run, found.lacking) == ("docker", "no", ("a card of amd",))
    assert prospect(gpu(), machine(tmp_path, daemon="unix:///s", cards=frozenset({"amd"}))).run == "docker"


def test_an_emulated_lane_needs_no_card(tmp_path: Path) -> None:
    assert prospect(gpu(emulate=True), machine(tmp_path, daemon="unix:///s")).run == "emulated"


def test_a_hosted_lane_says_why() -> None:
    lane = Lane(id="windows", backend="windows", hosted_only="MSVC runs on Windows")
    assert prospect(lane, BARE).lacking == ("a hosted runner: MSVC runs on Windows",)


def test_the_report_lists_lanes_and_what_to_install(tmp_path: Path) -> None:
    lines = list(report(BARE, [prospect(HOST, BARE), prospect(gpu(), machine(tmp_path))]))
    assert lines[0].endswith("no container daemon answers; no GPU")
    assert "cpu   yes    no     no   cmake" in lines
    assert any(line.startswith("  cmake") and line.endswith(": cpu") for line in lines)
    assert any(line.startswith("  a container daemon") and line.endswith(": rocm") for line in lines)


def test_the_command_prints_every_lane_of_a_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "matrix.yaml").write_text("backends: {cpu: {executor: host}}\nlanes: {products: [{backend: cpu}]}\n")
    assert main(["doctor", "--matrix", str(tmp_path / "matrix.yaml")]) == 0
    assert "\ncpu   yes    host   -    -\n" in capsys.readouterr().out


def test_a_glob_that_matches_no_file_is_pointed_out() -> None:
    lane = Lane(id="cpu", backend="cpu", sources=("src/**", "scr/**"), paths=("*.toml",))
    matrix = Matrix(file="m.yaml", lanes=(lane,), irrelevant=("docs/**",))
    found = list(idle_globs(matrix, ["src/a.cpp", "pyproject.toml"]))
    assert found == ["scr/** (sources)", "docs/** (irrelevant)"]

"""The language of --select, and what `list` and `explain` print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greenlane.cli import main
from greenlane.errors import MatrixError
from greenlane.matrix import export, rows
from greenlane.matrix.select import Selection


@pytest.fixture
def matrix(tmp_path: Path, small: str) -> Path:
    path = tmp_path / "matrix.yaml"
    path.write_text(small)
    return path


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("cpu", ["cpu", "cpu-clang", "cpu-sanitize"]),  # the backend is a tag
        ("id:cpu", ["cpu"]),
        ("cpu-*", ["cpu-clang", "cpu-sanitize"]),
        ("backend:rocm and not arch:gfx9*", ["rocm-gfx1100", "rocm-gfx1100-6.4"]),
        ("slow or toolkit:6.4", ["cpu-sanitize", "rocm-gfx1100-6.4"]),
        ("cpu-clang, slow", ["cpu-clang", "cpu-sanitize"]),
        ("not (rocm or slow)", ["cpu", "cpu-clang"]),
        ("cpu or rocm and slow", ["cpu", "cpu-clang", "cpu-sanitize"]),
        ("'row:BACKEND-CPU' and compiler:gcc", ["cpu", "cpu-sanitize"]),
        ("vendor:hip and family:gfx11", ["rocm-gfx1100", "rocm-gfx1100-6.4"]),
        ("not not id:cpu", ["cpu"]),
    ],
)
def test_an_expression_selects(matrix: Path, expression: str, ids: list[str]) -> None:
    assert [row["id"] for row in Selection(expression).select(rows.load(matrix))] == ids


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "--select:1: a glob, a tag or key:glob is wanted at the end"),
        ("cpu and", "--select:8: a glob, a tag or key:glob is wanted at the end"),
        ("(cpu", "--select:5: ')' is wanted"),
        ("cpu)", "--select:4: ')' is out of place"),
        ("cpu rocm", "--select:5: 'rocm' is out of place"),
        ("bakend:cpu", "--select:1: no key 'bakend'"),
        ("cpu or arch:gfx1101", "--select:8: 'arch:gfx1101' matches no lane; did you mean 'gfx1100'?"),
        ("cpu and rocm", "--select:1: each word matches a lane, but no lane is left"),
        ("(" * 60 + "cpu" + ")" * 60, "nested deeper than 50 levels"),
    ],
)
def test_a_bad_expression_is_refused(matrix: Path, expression: str, message: str) -> None:
    with pytest.raises(MatrixError) as error:
        Selection(expression).select(rows.load(matrix))
    assert message in str(error.value)


def test_list_prints_a_table(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--matrix", str(matrix), "--select", "slow or arch:gfx942"]) == 0
    assert capsys.readouterr().out == (
        "LANE          BACKEND  TOOLKIT  ARCH    VARIANT   ROW          REQUIRE  TAGS\n"
        "cpu-sanitize  cpu      -        -       sanitize  BACKEND-CPU  built    cpu,slow\n"
        "rocm-gfx942   rocm     7.0      gfx942  -         -            -        rocm\n"
    )


def test_list_json_has_the_promised_keys(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--matrix", str(matrix), "--json"]) == 0
    lanes = json.loads(capsys.readouterr().out)["lanes"]
    assert list(lanes[0]) == ["id", "backend", "toolkit", "arch", "variant", "tags", "row", "require", "digest"]
    assert len(lanes) == 6


def test_list_github_covers_every_lane_once_in_groups_below_256(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"v{n}" for n in range(600)]
    path = tmp_path / "matrix.yaml"
    variants = ", ".join(f"{name}: {{}}" for name in names)
    path.write_text(
        f"backends: {{x: {{runs_on: big, timeout: 61s, variants: {{{variants}}}}}}}\n"
        f"lanes: {{products: [{{backend: x, variant: [{', '.join(names)}]}}]}}\n"
    )
    assert main(["list", "--matrix", str(path), "--github"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["gate"] == "greenlane gate"
    assert [len(group["include"]) for group in document["groups"]] == [255, 255, 90]
    jobs = [job for group in document["groups"] for job in group["include"]]
    assert sorted(job["lane"] for job in jobs) == sorted(f"x-{name}" for name in names)
    assert (jobs[0]["runs-on"], jobs[0]["timeout-minutes"]) == (["big"], 12)


def test_a_lane_without_labels_runs_on_a_hosted_runner(matrix: Path) -> None:
    job = export.github(rows.load(matrix))["groups"][0]["include"][0]
    assert job["runs-on"] == ["ubuntu-24.04"]


def test_a_listing_from_the_cache_equals_the_first_one(matrix: Path) -> None:
    first = rows.load(matrix)
    assert rows.load(matrix) == first
    matrix.write_text(matrix.read_text().replace("BACKEND-CPU", "BACKEND-X"))
    assert rows.load(matrix)[0]["row"] == "BACKEND-X"


@pytest.mark.parametrize("damage", ["", "{", '{"rows": 3}', "null"])
def test_a_broken_cache_entry_is_made_again(matrix: Path, tmp_path: Path, damage: str) -> None:
    first = rows.load(matrix)
    (entry,) = (tmp_path / "cache").rglob("*.json")
    entry.write_text(damage)
    assert rows.load(matrix) == first


def test_an_unwritable_cache_is_no_error(matrix: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert len(rows.load(matrix)) == 6


def test_explain_says_where_each_value_came_from(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "rocm-gfx1100", "--matrix", str(matrix), "--select", "rocm and not arch:gfx9*"]) == 0
    out = capsys.readouterr().out
    assert f"  timeout = 7200.0  (arch gfx1100, {matrix}:15:32)" in out
    assert f"  macros.USE_HIP = 1  (backend rocm, {matrix}:14:23)" in out
    assert "selected by --select: rocm matches, arch:gfx9* does not match" in out


def test_explain_says_why_a_lane_does_not_exist(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "rocm-gfx942-6.4", "--matrix", str(matrix)]) == 0
    assert f"excluded at {matrix}:21:7: nobody ships it" in capsys.readouterr().out
    assert main(["explain", "cpu-icx", "--matrix", str(matrix)]) == 0
    assert "no product or include of 'cpu' names 'icx'; it has cpu, cpu-clang, cpu-sanitize" in capsys.readouterr().out
    assert main(["explain", "rocn-gfx1100", "--matrix", str(matrix)]) == 2
    assert "did you mean 'rocm-gfx1100'?" in capsys.readouterr().err


def test_explain_leaves_out_what_went_with_a_gate(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = "gates: {bench: {command: run, metrics: {m: {path: a, direction: higher}}}}\n"
    text = matrix.read_text().replace("env: {HIP_VISIBLE_DEVICES: 0}", "gates: {bench: null}")
    matrix.write_text(text + bench)
    assert main(["explain", "rocm-gfx942", "--matrix", str(matrix)]) == 0
    out = capsys.readouterr().out
    assert "  gates.bench = (taken away)  (override 1," in out
    assert "gates.bench.command" not in out

"""The backend table says what records prove, of which commit, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenlane import cli
from greenlane.errors import MatrixError
from greenlane.ledger import Ledger
from greenlane.matrix import load
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import Digests, FirstError, Outcome, Record, StageResult
from greenlane.report import table

ROOT = Path(__file__).parents[2]
MATRIX = """\
stages: {build: [make], test: [make check]}
backends:
  cpu: {row: BACKEND-CPU, compiler: gcc}
  rocm: {row: BACKEND-ROCM, compiler: hipcc, device: amd, stages: {test: null}}
lanes: {products: [{backend: rocm, arch: gfx1100}, {backend: cpu}]}
"""
README = f"# x\n\n{table.BEGIN}\nold\n{table.END}\n\nmore\n"
RAN = tuple(Evidence)
EMULATED = (Evidence.BUILT, Evidence.EMULATED, Evidence.REACHED, Evidence.EXACT)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    (tmp_path / "README.md").write_text(README)
    return tmp_path


def record(project: Path, lane: str, *evidence: str, head: str = "a" * 40, **changes: object) -> None:
    found = load(project / "matrix.yaml").lane(lane)
    assert found is not None
    fields = {
        "lane": lane, "head": head, "dirty": False, "outcome": Outcome.PASS, "trust": "runner", "evidence": evidence,
        "digests": Digests(matrix="m", lane=found.digest, tree="t"), "started": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    Ledger(project / ".greenlane" / "ledger").put(Record(**(fields | changes)))  # type: ignore[arg-type]


def run(project: Path, *more: str) -> int:
    into = ("--into", str(project / "README.md"))
    return cli.main(["report", "--table", "backends", "--matrix", str(project / "matrix.yaml"), *into, *more])


def rows(project: Path) -> dict[str, str]:
    lines = (project / "README.md").read_text().splitlines()
    return {line.split("`")[1]: line for line in lines if line.startswith("| BACKEND")}


def lane(*stages: Stage, gates: tuple[str, ...] = ()) -> Lane:
    return Lane("x", "x", stages=dict.fromkeys(stages, ("true",)), gates={name: {} for name in gates})


def test_this_repositorys_table_is_not_stale() -> None:
    arguments = ["--matrix", str(ROOT / "matrix.yaml"), "--into", str(ROOT / "README.md")]
    assert cli.main(["report", "--table", "backends", "--check", *arguments]) == 0


def test_lanes_without_a_record_are_shown_as_not_run(project: Path) -> None:
    assert run(project) == 0
    assert rows(project) == {
        "cpu": "| BACKEND-CPU | `cpu` | _not run_ | — | — |",
        "rocm-gfx1100": "| BACKEND-ROCM | `rocm-gfx1100` | _not run_ | — | — |",
    }


def test_a_record_is_shown_with_its_commit(project: Path) -> None:
    record(project, "cpu", "checked", "built", "tested")
    run(project)
    assert rows(project)["cpu"] == "| BACKEND-CPU | `cpu` | checked, built, tested | M1 | `aaaaaaaaaa` |"
    assert (project / "README.md").read_text().endswith(f"{table.END}\n\nmore\n")


def test_a_red_lane_is_red_and_has_no_milestone(project: Path) -> None:
    record(project, "cpu", "checked", "built", head="b" * 40, started="2026-01-01T00:00:00Z")
    red = StageResult(stage=Stage.TEST, outcome=Outcome.FAIL, first_error=FirstError(message="m", fingerprint="f"))
    record(project, "cpu", "checked", "built", outcome=Outcome.FAIL, stages=(red,), started="2026-01-02T00:00:00Z")
    run(project)
    assert "**red in test**, before that: checked, built | — | `aaaaaaaaaa`" in rows(project)["cpu"]


@pytest.mark.parametrize("changes", [{"dirty": True}, {"trust": "fork"}, {"outcome": Outcome.VOID}])
def test_what_certifies_no_commit_or_is_a_forks_word_is_not_shown(changes: dict[str, object], project: Path) -> None:
    record(project, "cpu", "checked", "built", **changes)
    run(project)
    assert "_not run_" in rows(project)["cpu"]


def test_what_the_machine_prevented_says_nothing_of_the_lane(project: Path) -> None:
    cut = FirstError(message="no daemon", fingerprint="", rule="infra")
    stage = StageResult(stage=Stage.BUILD, outcome=Outcome.FAIL, first_error=cut)
    record(project, "cpu", "checked", outcome=Outcome.FAIL, stages=(stage,), started="2026-01-02T00:00:00Z")
    record(project, "cpu", "checked", "built")
    run(project)
    assert "checked, built | M0" in rows(project)["cpu"]


def test_a_lane_that_was_changed_since_is_said_to_be(project: Path) -> None:
    record(project, "cpu", "checked", "built")
    run(project)
    (project / "matrix.yaml").write_text(MATRIX.replace("make check", "make check-all"))
    assert run(project, "--check") == 1
    run(project)
    assert "checked, built (_before the lane was changed_) | (M0) |" in rows(project)["cpu"]


def test_the_check_needs_no_records_and_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(project, "cpu", "checked", "built")
    run(project)
    for path in sorted((project / ".greenlane").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert run(project, "--check") == 0
    text = (project / "README.md").read_text().replace("| M0 |", "| M5 |")
    (project / "README.md").write_text(text)
    capsys.readouterr()
    assert run(project, "--check") == 1
    assert "| M5 |" in capsys.readouterr().out
    assert (project / "README.md").read_text() == text


def test_another_machines_evidence_stays_until_a_newer_record_replaces_it(project: Path) -> None:
    record(project, "rocm-gfx1100", "checked", "built", started="2026-02-01T00:00:00Z")
    run(project)
    for path in (project / ".greenlane" / "ledger").rglob("*.json"):
        path.unlink()
    (project / ".greenlane" / "ledger" / "index.sqlite").unlink()
    record(project, "cpu", "checked", "built")
    record(project, "rocm-gfx1100", "checked", head="c" * 40, started="2026-01-01T00:00:00Z")  # an older one
    run(project)
    assert "checked, built | M0 | `aaaaaaaaaa`" in rows(project)["rocm-gfx1100"]
    assert "M0" in rows(project)["cpu"]


def test_a_lane_that_is_gone_leaves_the_table(project: Path) -> None:
    record(project, "cpu", "checked", "built")
    run(project)
    without = MATRIX.replace(", {backend: cpu}", "").replace("  cpu: {row: BACKEND-CPU, compiler: gcc}\n", "")
    (project / "matrix.yaml").write_text(without)
    assert run(project) == 0
    assert list(rows(project)) == ["rocm-gfx1100"]
    assert '"cpu"' not in (project / table.EVIDENCE).read_text()


@pytest.mark.parametrize(
    ("found", "evidence", "expected"),
    [
        (lane(Stage.BUILD, Stage.TEST), (), None),
        (lane(Stage.BUILD, Stage.TEST), (Evidence.BUILT,), "M0"),
        (lane(Stage.BUILD, Stage.TEST), (Evidence.BUILT, Evidence.TESTED), "M1"),
        # a lane without tests of its own may climb by what it has, and one that has them may not pass them by
        (lane(Stage.BUILD, gates=("exact",)), (Evidence.BUILT, Evidence.EXACT), "M2"),
        (lane(Stage.BUILD, Stage.TEST, gates=("exact",)), (Evidence.BUILT, Evidence.EXACT), "M0"),
        (lane(Stage.BUILD, gates=("exact", "reach")), (Evidence.BUILT, Evidence.REACHED), "M0"),
        # emulated: never on its own device
        (lane(Stage.BUILD, gates=("exact", "reach")), EMULATED, "M3"),
        (lane(Stage.BUILD, gates=("bench",)), (Evidence.BUILT, Evidence.BENCHED), "M0"),
        (lane(Stage.BUILD, gates=("bench",)), (Evidence.BUILT, Evidence.RAN_ON_FAMILY, Evidence.BENCHED), "M0"),
        (lane(Stage.BUILD, Stage.TEST, gates=("exact", "bench")), RAN, "M5"),
    ],
)  # fmt: skip
def test_a_milestone_stands_on_those_below_it(
    found: Lane, evidence: tuple[Evidence, ...], expected: str | None
) -> None:
    assert table.milestone(found, evidence) == expected


@pytest.mark.parametrize(
    "text", ["", table.BEGIN, f"{table.END}\n{table.BEGIN}\n", f"{table.BEGIN}\n{table.END}\n" * 2]
)
def test_a_file_without_its_two_markers_is_left_alone(
    text: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "README.md").write_text(text)
    assert run(project) == 2
    assert "write both" in capsys.readouterr().err
    assert (project / "README.md").read_text() == text


@pytest.mark.parametrize("content", ["", "{", "[]", '{"lanes": {"cpu": {}}}', '{"lanes": {}, "more": 1}'])
def test_a_damaged_file_of_evidence_is_one_line(content: str, project: Path) -> None:
    (project / "docs").mkdir()
    (project / table.EVIDENCE).write_text(content)
    with pytest.raises(MatrixError, match="remove the file to begin it anew"):
        table.read(project / table.EVIDENCE)
    assert run(project) == 2

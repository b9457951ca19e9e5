"""The command: formats, baseline, suppression, --fix, --confirm, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from greenlane import cli
from greenlane.checks import baseline, fix
from greenlane.checks.check import run_checks
from greenlane.checks.formats import github, sarif, text
from greenlane.checks.formats import json as as_json
from greenlane.errors import MatrixError
from greenlane.matrix.model import Lane, Matrix
from greenlane.record.model import Edit

HELPER = """static int padded(int width) { return width * 2; }

#ifdef USE_CUDA
int device(int width) { return padded(width); }
#endif
"""
MATRIX = """version: 1
backends:
  cpu: {}
  cuda: {macros: {USE_CUDA: 1}, vendors: [cuda]}
lanes:
  products: [{backend: cpu}, {backend: cuda}]
"""


CPU = (Lane(id="cpu", backend="cpu"),)
KNOWN = ("not (USE_CUDA and USE_HIP)",)  # what a constraint speaks of is off where a lane is silent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    (tmp_path / "a.cpp").write_text(HELPER)
    return tmp_path


def _run(project: Path, *words: str) -> int:
    return cli.main(["check", "-C", str(project), *words])


def test_text_shows_place_line_caret_lanes_and_suggestion(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a.cpp:1:12: error: function 'padded' is defined but never used; "
        "gcc and clang warn (-Wunused-function) [unused-function]",
        "    1 | static int padded(int width) { return width * 2; }",
        "      |            ^",
        "  in cpu",
        "a.cpp:4: note: used here in other lanes",
        "  suggestion: guard it like its uses: #ifdef USE_CUDA",
        "greenlane check: 1 error in 2 lanes",
    ]


def test_a_clean_tree_exits_with_zero(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "a.cpp").write_text("int f() { return 1; }\n")
    assert _run(project) == 0
    assert capsys.readouterr().out == "greenlane check: no findings in 2 lanes\n"


def test_lane_and_rule_narrow_the_report(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project, "--lane", "cuda") == 0
    assert _run(project, "--rule", "call-arity") == 0
    assert _run(project, "--lane", "cpu", "--rule", "unused-function") == 1


@pytest.mark.parametrize(
    ("words", "hint"), [(["--lane", "cdua"], "cuda"), (["--rule", "unused-func"], "unused-function")]
)
def test_a_misspelt_name_is_an_error_with_the_nearest(
    project: Path, words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(project, *words) == 2
    assert f"did you mean {hint!r}?" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "-C", str(tmp_path / "none")]) == 2


def test_fix_applies_the_guard_and_every_lane_is_clean(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project, "--fix") == 0
    assert (
        (project / "a.cpp")
        .read_text()
        .startswith("#ifdef USE_CUDA\nstatic int padded(int width) { return width * 2; }\n#endif\n")
    )
    assert "applied 1 suggestion" in capsys.readouterr().err


def test_fix_keeps_carriage_returns(project: Path) -> None:
    (project / "a.cpp").write_bytes(HELPER.replace("\n", "\r\n").encode())
    assert _run(project, "--fix") == 0
    assert (project / "a.cpp").read_bytes().startswith(b"#ifdef USE_CUDA\r\nstatic int padded")
    assert b"\n\n" not in (project / "a.cpp").read_bytes()


def test_fix_takes_back_what_leads_to_other_findings(project: Path) -> None:
    report = run_checks(Matrix("m", CPU, KNOWN), project)
    before = (project / "a.cpp").read_bytes()
    worse = run_checks(Matrix("m", (*CPU, Lane(id="b", backend="b")), KNOWN), project)
    answers = iter([report, worse, worse])
    wrong = report.findings[0].model_copy(update={"suggestion": {"text": "x", "edits": ()}})
    fixable = report.findings[0].model_copy(
        update={
            "suggestion": type(report.findings[0].suggestion)(
                text="x", edits=(Edit(file="a.cpp", first=1, last=1, text="broken"),)
            )
        }
    )
    outcome = fix.apply(type(report)(report.lanes, (fixable,)), project, lambda: next(answers))
    assert (outcome.applied, outcome.refused) == (0, 1)
    assert (project / "a.cpp").read_bytes() == before
    assert wrong.rule == "unused-function"


def test_fix_writes_through_no_link(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("else") / "b.cpp"
    target.write_text(HELPER)
    report = run_checks(Matrix("m", CPU, KNOWN), project)
    (project / "a.cpp").unlink()
    (project / "a.cpp").symlink_to(target)
    edits = (Edit(file="a.cpp", first=1, last=1, text="x"),)
    finding = report.findings[0].model_copy(
        update={"suggestion": type(report.findings[0].suggestion)(text="x", edits=edits)}
    )
    fix.apply(type(report)(report.lanes, (finding,)), project, lambda: report)
    assert target.read_text() == HELPER


def test_a_baseline_counts_only_what_is_new(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "baseline.json"
    assert _run(project, "--baseline", str(file)) == 0
    assert _run(project, "--baseline", str(file)) == 0
    (project / "a.cpp").write_text("// moved down\n" + HELPER + "static int other() { return 1; }\n")
    capsys.readouterr()
    assert _run(project, "--baseline", str(file), "--format", "json") == 1
    document = json.loads(capsys.readouterr().out)
    assert [finding["line"] for finding in document["findings"]] == [7]
    assert document["baseline"] == 1


def test_a_known_finding_in_another_lane_is_new(project: Path) -> None:
    lanes = (Lane(id="cpu", backend="cpu"), Lane(id="arm", backend="cpu"))
    report = run_checks(Matrix("m", lanes[:1], KNOWN), project)
    file = project / "baseline.json"
    file.write_text(as_json.render(report, project))
    again = baseline.compare(run_checks(Matrix("m", lanes, KNOWN), project), file, project)
    assert [finding.lanes for finding in again.findings] == [("arm",)]


@pytest.mark.parametrize("content", ["", "[]", '{"findings": [{}]}', "\x00"])
def test_a_broken_baseline_is_one_line(project: Path, content: str) -> None:
    file = project / "baseline.json"
    file.write_text(content)
    with pytest.raises(MatrixError, match="no baseline"):
        baseline.compare(run_checks(Matrix("m", CPU, KNOWN), project), file, project)


def test_sarif_is_valid_against_the_shape_that_github_reads(project: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    report = run_checks(Matrix("m", CPU, KNOWN), project)
    document = json.loads(sarif.render(report, project))
    schema = json.loads(Path(__file__).with_name("sarif-subset.schema.json").read_text())
    jsonschema.validate(document, schema)
    (result,) = document["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1, "startColumn": 12}


def test_sarif_fingerprints_survive_moving_lines(project: Path) -> None:
    matrix = Matrix("m", CPU, KNOWN)
    before = sarif.fingerprint(run_checks(matrix, project).findings[0])
    (project / "a.cpp").write_text("\n\n" + HELPER)
    assert sarif.fingerprint(run_checks(matrix, project).findings[0]) == before


def test_github_annotations_stay_within_what_is_shown(project: Path) -> None:
    (project / "a.cpp").write_text("".join(f"static int f{number}() {{ return 1; }}\n" for number in range(30)))
    lines = github.render(run_checks(Matrix("m", CPU, KNOWN), project), project).splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("::error file=a.cpp,line=1,col=12,title=unused-function::function 'f0'")
    assert lines[-1] == "::error::21 more findings of this kind; run greenlane check"


def test_annotations_escape_what_would_end_them(project: Path) -> None:
    (project / "a%b,c.cpp").write_text(HELPER)
    out = github.render(run_checks(Matrix("m", CPU, KNOWN), project), project)
    assert "file=a%25b%2Cc.cpp," in out


def test_text_shows_no_control_characters(project: Path) -> None:
    (project / "a\x1b[31m.cpp").write_text(HELPER)
    report = run_checks(Matrix("m", CPU, KNOWN), project)
    assert "\x1b" not in text.render(report, project)


def test_a_comment_with_a_reason_suppresses_and_is_counted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "a.cpp").write_text("// greenlane: allow(unused-function) kept for the next release\n" + HELPER)
    assert _run(project) == 0
    assert "(1 suppressed)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("// greenlane: allow(unused-function)", "needs a reason"),
        ("// greenlane: allow(unsued-function) why not", "no rule is called"),
        ("// greenlane: allow(call-arity) nothing here", "suppresses nothing"),
    ],
)
def test_a_suppression_without_reason_rule_or_effect_is_an_error(project: Path, comment: str, message: str) -> None:
    (project / "a.cpp").write_text(f"{comment}\n{HELPER}")
    report = run_checks(Matrix("m", CPU, KNOWN), project)
    assert any(finding.rule == "suppression" and message in finding.message for finding in report.findings)


def test_the_matrix_suppresses_by_lane_and_an_idle_entry_is_an_error(project: Path) -> None:
    lanes = (Lane(id="cpu", backend="cpu"), Lane(id="arm", backend="cpu"))
    entry = {"rule": "unused-function", "file": "a.cpp", "lanes": ["arm"], "why": "measured elsewhere"}
    idle = {"rule": "call-arity", "file": "**", "why": "was needed once"}
    report = run_checks(Matrix("m", lanes, KNOWN, {"suppress": [entry, idle]}), project)
    assert [(finding.rule, finding.lanes) for finding in report.findings] == [
        ("unused-function", ("cpu",)),
        ("suppression", ("cpu", "arm")),
    ]


def test_off_and_severity_come_from_the_matrix(project: Path) -> None:
    lanes = (Lane(id="cpu", backend="cpu"),)
    assert run_checks(Matrix("m", lanes, KNOWN, {"off": ["unused-function"]}), project).findings == ()
    (finding,) = run_checks(Matrix("m", lanes, KNOWN, {"severity": {"unused-function": "note"}}), project).findings
    assert finding.severity == "note"


def test_a_second_run_is_taken_from_the_cache_and_a_damaged_cache_is_ignored(project: Path, cache_folder: Path) -> None:
    matrix = Matrix("m", CPU, KNOWN)
    first = run_checks(matrix, project)
    (stored,) = cache_folder.rglob("report")
    assert run_checks(matrix, project) == first
    stored.write_bytes(b"greenlane-checks\n" + b"0" * 64)
    assert run_checks(matrix, project) == first
    assert not list(project.rglob("report")), "nothing is believed that lies in the project"


@pytest.mark.skipif(shutil.which("clang++") is None, reason="no clang++ on PATH")
def test_the_compiler_confirms_a_finding_and_withdraws_another(project: Path) -> None:
    from greenlane.checks.confirm import confirm

    matrix = Matrix("m", CPU, KNOWN)
    report = run_checks(matrix, project)
    confirmed = confirm(report, matrix, project)
    assert [finding.layer for finding in confirmed.findings] == ["compiler"]
    (project / "a.cpp").write_text(HELPER + "int use() { return padded(1); }\n")
    withdrawn = confirm(report, matrix, project)
    assert (withdrawn.findings, withdrawn.withdrawn) == ((), 1)


def test_without_a_compiler_confirm_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert _run(project, "--confirm") == 3
    assert "install clang" in capsys.readouterr().err

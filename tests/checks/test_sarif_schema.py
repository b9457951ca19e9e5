"""SARIF against the official 2.1.0 schema (revision rtm.5), carried by the npm package @microsoft/jest-sarif (MIT).

GitHub's limits as well. The schema is fetched when the test runs and is not kept here; without npm, or without a
registry that answers, the test is skipped and says so. test_verb.py holds the same documents against the subset that
GitHub reads.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from greenlane.checks.check import run_checks
from greenlane.checks.formats import sarif
from greenlane.checks.report import Report
from greenlane.checks.source.files import Unparsed
from greenlane.matrix import load
from greenlane.matrix.model import Lane, Matrix
from greenlane.record.model import Finding

PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"
MEMBER = "package/lib/schemas/sarif-2.1.0-rtm.5.json"
STORY = Path(__file__).parent.parent / "fixtures" / "port"
MOST_BYTES = 10_000_000  # GitHub's limit of an upload, gzipped


@pytest.fixture(scope="session")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if shutil.which("npm") is None:
        pytest.skip("no npm to fetch the official schema with")
    folder = tmp_path_factory.mktemp("schema")
    try:
        ran = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("the registry does not answer")
    archive = next(folder.glob("*.tgz"), None)
    if archive is None:
        pytest.skip(f"{PACKAGE} cannot be fetched: {ran.stderr.strip()[-200:]}")
    with tarfile.open(archive) as opened:
        member = opened.extractfile(MEMBER)
        assert member is not None
        found: dict[str, Any] = json.load(member)
    assert "SARIF) Version 2.1.0" in found["title"]
    return found


def _problems(schema: dict[str, Any], document: Any) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    validator = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(document)]


def _rendered(report: Report, root: Path) -> Any:
    return json.loads(sarif.render(report, root))


@pytest.mark.parametrize("variant", ["story", "doubled-guard", "unused-helpers"])
def test_the_documents_of_the_story_are_valid(schema: dict[str, Any], variant: str, tmp_path: Path) -> None:
    root = tmp_path / "port"
    shutil.copytree(STORY, root, ignore=shutil.ignore_patterns("variants"))
    shutil.copytree(STORY / "variants" / variant, root, dirs_exist_ok=True)
    report = run_checks(load(root / "matrix.yaml"), root)
    assert report.findings
    assert _problems(schema, _rendered(report, root)) == []


def test_a_file_name_and_a_region_that_are_odd_are_valid(schema: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a b%,#.cpp").write_text("static int nobody() { return 1; }\nint x = ((;\n")
    (tmp_path / "blob.cpp").write_bytes(b"\0\1")
    report = run_checks(Matrix("m", (Lane(id="cpu", backend="cpu"),)), tmp_path)
    assert report.unparsed
    assert _problems(schema, _rendered(report, tmp_path)) == []


def test_the_schema_refuses_what_is_broken(schema: dict[str, Any], tmp_path: Path) -> None:
    document = _rendered(Report(("cpu",), (_finding(0),)), tmp_path)
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert _problems(schema, document) != []


def test_a_run_of_many_findings_is_valid_and_stays_within_githubs_limits(
    schema: dict[str, Any], tmp_path: Path
) -> None:
    report = Report(
        ("cpu",), tuple(map(_finding, range(30_000))), tuple(Unparsed(f"f{n}.cpp", 1, "binary") for n in range(500))
    )
    text = sarif.render(report, tmp_path)
    run = json.loads(text)["runs"][0]
    assert len(run["results"]) == 5000  # shown of a run; 25,000 are accepted
    assert len(run["tool"]["driver"]["rules"]) <= 25_000
    assert run["properties"]["notShown"] == 25_000
    assert max(len(result["locations"]) for result in run["results"]) <= 1000
    assert len(gzip.compress(text.encode())) < MOST_BYTES
    run["results"] = run["results"][:200]  # as many as are worth the time
    assert _problems(schema, {**json.loads(text), "runs": [run]}) == []


def _finding(number: int) -> Finding:
    return Finding(
        rule="unused-function", severity="error", file=f"src/f{number}.cpp", line=1, column=1, lanes=("cpu",),
        message=f"function 'f{number}' is defined but never used " + "x" * 2000,
    )  # fmt: skip

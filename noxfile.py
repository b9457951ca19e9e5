# /// script
# dependencies = [
#   "nox>=2025.2.9", "pydantic>=2.7", "pyyaml>=6.0", "rich>=13.7", "jinja2>=3.1", "docker>=7.1", "numpy>=1.26",
#   "tree-sitter>=0.23", "tree-sitter-cpp>=0.23", "tree-sitter-cuda>=0.21", "python-sat>=1.8.dev13",
# ]
# ///
"""`nox -l` lists every lane and developer task; `nox -s cpu` runs the main job."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import nox

from greenlane.nox import lanes

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["tests"]

lanes("matrix.yaml")

TEST_TOOLS = ["pytest>=8", "hypothesis>=6.100", "ruff>=0.6", "mypy>=1.11", "clang-format>=18", "types-PyYAML"]


@nox.session
def tests(session: nox.Session) -> None:
    """The unit tier: no Docker, no GPU, no torch; under ten minutes."""
    session.install("-e", ".[engine]", *TEST_TOOLS)
    session.run(
        "pytest", "tests", "--ignore=tests/docker", "--ignore=tests/gpu", "--ignore=tests/nightly", *session.posargs
    )


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, mypy --strict and clang-format."""
    session.install("-e", ".[engine]", *TEST_TOOLS)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")

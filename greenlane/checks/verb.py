"""What `greenlane check` does beside checking: confirm, fix, compare with a baseline, print."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from greenlane.checks import baseline, formats
from greenlane.checks.check import run_checks
from greenlane.checks.report import Report
from greenlane.errors import MatrixError
from greenlane.matrix import load
from greenlane.matrix.model import Matrix


def command(arguments: Namespace) -> int:
    root = arguments.directory
    if not root.is_dir():
        raise MatrixError(f"{root}: no such folder; -C names the project's folder")
    matrix = load(_matrix_file(arguments.matrix, root))
    report = _report(arguments, matrix, root)
    if arguments.fix:
        report = _fixed(arguments, matrix, root, report)
    if arguments.baseline is not None:
        report = baseline.compare(report, arguments.baseline, root)
    sys.stdout.write(formats.load(arguments.format).render(report, root))
    return 1 if report.is_red else 0


def _matrix_file(given: Path, root: Path) -> Path:
    """The matrix lies in the project unless a path says otherwise."""
    return given if given.is_absolute() or (given != Path("matrix.yaml") and given.exists()) else root / given


def _report(arguments: Namespace, matrix: Matrix, root: Path) -> Report:
    report = run_checks(matrix, root, arguments.lane or None, arguments.rule or None)
    if arguments.confirm:
        from greenlane.checks.confirm import confirm

        report = confirm(report, matrix, root)
    return report


def _fixed(arguments: Namespace, matrix: Matrix, root: Path, before: Report) -> Report:
    from greenlane.checks.fix import apply

    outcome = apply(before, root, lambda: run_checks(matrix, root))
    print(outcome.summary, file=sys.stderr)
    return _report(arguments, matrix, root)

"""The checks run once for all lanes of a call; every lane then takes its own findings."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

from greenlane.lanes.tree import SourceTree
from greenlane.matrix.model import Matrix

if TYPE_CHECKING:
    from greenlane.checks.report import Report

_lock = threading.Lock()
_reports: dict[tuple[str, str], Report] = {}


def findings_of(matrix: Matrix, tree: SourceTree) -> Report:
    from greenlane.checks.check import run_checks

    key = (str(tree.path), inputs(matrix, tree))
    with _lock:
        if key not in _reports:
            _reports[key] = run_checks(matrix, tree.path)
        return _reports[key]


def inputs(matrix: Matrix, tree: SourceTree) -> str:
    """Hex SHA-256 of what the checks read: the whole tree and the whole matrix, for they compare lanes."""
    return hashlib.sha256(f"{tree.digest()} {matrix.digest}".encode()).hexdigest()

"""The checks run once for all lanes of a call; every lane then takes its own findings."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from greenlane.lanes.context import Context

if TYPE_CHECKING:
    from greenlane.checks.check import Report

_lock = threading.Lock()
_reports: dict[tuple[str, str, str], Report] = {}


def findings_of(context: Context) -> Report:
    from greenlane.checks.check import run_checks

    key = (str(context.tree.path), context.tree.digest(), context.matrix.digest)
    with _lock:
        if key not in _reports:
            _reports[key] = run_checks(context.matrix, context.tree.path)
        return _reports[key]

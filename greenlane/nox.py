"""Three lines in anybody's noxfile: `import nox`, `from greenlane.nox import lanes`, `lanes("matrix.yaml")`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nox

from greenlane.matrix import rows

# This very greenlane, also where a noxfile has put it on `sys.path` by hand.
_IMPORTABLE = str(Path(__file__).resolve().parent.parent)
# `nox -j` runs only sessions that allow it; older versions know neither the option nor the argument.
_PARALLEL = {"allow_parallel": True} if "allow_parallel" in inspect.signature(nox.session).parameters else {}


def lanes(path: str | Path = "matrix.yaml") -> None:
    """Makes one nox session per lane, named and tagged as in the matrix. A mistake in it ends nox with every problem.

    A session runs `greenlane run LANE` with the interpreter that runs nox, passes posargs on, and never skips.
    """
    from greenlane.errors import GreenlaneError

    try:
        found = rows.load(Path(path))
    except GreenlaneError as error:
        sys.exit(f"greenlane: {error}")
    session: Any = nox.session
    for row in found:
        make = session(name=row["id"], tags=row["tags"], venv_backend="none", default=False, **_PARALLEL)
        make(_session(row, str(path)))


def _session(row: rows.Row, matrix: str) -> Callable[[nox.Session], None]:
    def run(session: nox.Session) -> None:
        command = [sys.executable, "-m", "greenlane", "run", "--matrix", matrix, row["id"], *session.posargs]
        session.run(*command, env={"PYTHONPATH": _IMPORTABLE}, external=True)

    run.__doc__ = row["summary"]
    return run

"""The host's variables that the matrix lets in. Their values are masked in logs."""

from __future__ import annotations

import os

from greenlane.matrix.model import Lane


def passed_through(lane: Lane) -> dict[str, str]:
    return {name: os.environ[name] for name in lane.passthrough if name in os.environ}

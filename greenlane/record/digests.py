"""Digests that more than one layer must compute alike."""

from __future__ import annotations

import hashlib
import json

from greenlane.matrix.model import Lane


def gates_digest(lane: Lane) -> str:
    """Hex SHA-256 over a lane's gates: which measurements, by which rule."""
    return hashlib.sha256(json.dumps(dict(lane.gates), sort_keys=True, default=str).encode()).hexdigest()

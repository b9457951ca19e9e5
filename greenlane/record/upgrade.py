"""Reads documents that an older greenlane wrote: one step per schema version, oldest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlane.record.model import SCHEMA

STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}  # from version n to n + 1


def upgraded(document: object) -> dict[str, Any]:
    """The document in today's schema. Raises ValueError when it is no record or of a schema from the future."""
    if not isinstance(document, dict):
        raise ValueError("a record is a JSON object")
    version = document.get("schema")
    if not isinstance(version, int) or not 1 <= version <= SCHEMA:
        raise ValueError(f"schema {version!r} is not one that this greenlane reads (1 to {SCHEMA}); update greenlane")
    while version < SCHEMA:
        document = STEPS[version](document)
        version += 1
    return document

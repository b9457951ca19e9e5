"""Where an interrupted lane stood: its green stages, valid only for exactly the same inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import ValidationError

import greenlane
from greenlane.ledger.store import write_durably
from greenlane.matrix.model import Lane, Stage
from greenlane.record.model import StageResult

ALWAYS = (Stage.CHECK, Stage.IMAGE)  # cached by content themselves, and the place must be made anew


def inputs_key(lane: Lane, tree_digest: str, *more: str | None) -> str:
    """Hex SHA-256 of what decides a lane's result."""
    document = json.dumps([lane.digest, tree_digest, greenlane_digest(), *more])
    return hashlib.sha256(document.encode()).hexdigest()


def load(path: Path, key: str) -> dict[Stage, StageResult]:
    """The stages that ended green before the cut; none when anything that went in has changed."""
    try:
        document = json.loads(path.read_text())
        if document["key"] != key:
            return {}
        results = [StageResult.model_validate(stage) for stage in document["stages"]]
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return {}
    return {result.stage: result for result in results if result.outcome.is_green and result.stage not in ALWAYS}


def save(path: Path, key: str, results: Sequence[StageResult]) -> None:
    stages = [result.model_dump(mode="json") for result in results]
    write_durably(path, json.dumps({"key": key, "stages": stages}).encode())


@cache
def greenlane_digest() -> str:
    """Hex SHA-256 over the tool's own files: another greenlane may judge otherwise."""
    root = Path(greenlane.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()

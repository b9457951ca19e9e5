"""Device code in built objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def survey(folders: Sequence[Path], log: Sequence[str]) -> dict[str, Any]:
    return {}


def architectures(built: object) -> tuple[str, ...]:
    return ()

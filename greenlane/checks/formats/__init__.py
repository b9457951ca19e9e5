"""One module per output format: `render` turns a report into text. The folder is the registry."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol, cast

from greenlane.checks.report import Report


class Format(Protocol):
    """What a module in this folder must define."""

    def render(self, report: Report, root: Path) -> str: ...


def load(name: str) -> Format:
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))

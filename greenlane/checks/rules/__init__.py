"""One module per rule family; the folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Protocol, cast

from greenlane.checks.findings import Findings
from greenlane.checks.source.project import Project


class RuleFamily(Protocol):
    """What a module in this folder must define. Modules satisfy it as they are."""

    RULES: tuple[str, ...]

    def check(self, project: Project, findings: Findings) -> None: ...


def families() -> Iterable[RuleFamily]:
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        yield cast(RuleFamily, importlib.import_module(f"{__name__}.{module.name}"))

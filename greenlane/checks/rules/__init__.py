"""One module per rule family; the folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Protocol, cast

from greenlane.checks.findings import Findings
from greenlane.checks.source.project import Project


class RuleFamily(Protocol):
    """What a module in this folder must define: RULES, and one of the two below. Modules satisfy it as they are."""

    RULES: tuple[str, ...]


class FileFamily(RuleFamily, Protocol):
    """Looks at a file that some lane reads. What it says may depend on names that the file mentions, on the files
    that it reads and on those that read it; beyond that a change of another file would go unnoticed."""

    def check_file(self, project: Project, path: str, findings: Findings) -> None: ...


class TreeFamily(RuleFamily, Protocol):
    """Looks at the whole tree at once."""

    def check_tree(self, project: Project, findings: Findings) -> None: ...

    def is_touched(self, project: Project, changed: Iterable[str]) -> bool:
        """Whether a change within these files, their directives the same, may change what is said."""


def families() -> Iterable[RuleFamily]:
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        yield cast(RuleFamily, importlib.import_module(f"{__name__}.{module.name}"))


def file_families() -> Iterable[FileFamily]:
    return (cast(FileFamily, family) for family in families() if hasattr(family, "check_file"))


def tree_families() -> Iterable[TreeFamily]:
    return (cast(TreeFamily, family) for family in families() if hasattr(family, "check_tree"))

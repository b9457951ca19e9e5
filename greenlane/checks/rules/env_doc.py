"""Environment variables: each that is read is documented, each that is documented is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from greenlane.checks.findings import Findings
from greenlane.checks.source.project import Project
from greenlane.matrix.checks import Environment
from greenlane.matrix.globs import first_match

RULES = ("env-doc",)

_C_READ = re.compile(r'\b(?:std::)?(?:secure_)?getenv\s*\(\s*"([A-Za-z_]\w*)"')
_PYTHON_READ = re.compile(
    r"""\b(?:os\.)?(?:environ(?:\.get|\.setdefault|\.pop)?|getenv)\s*[\[(]\s*f?["']([A-Za-z_]\w*)["']"""
)
_DOCUMENTED = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`")


def is_touched(project: Project, changed: Iterable[str]) -> bool:
    return project.config.environment is not None


def check_tree(project: Project, findings: Findings) -> None:
    config = project.config.environment
    if config is None:
        return
    lanes = [lane.id for lane in project.lanes]
    documented = dict(_documented(project, config))
    read: dict[str, tuple[str, int, int]] = {}
    for name, place in _reads(project, config):
        read.setdefault(name, place)
    for name, place in sorted(read.items()):
        if name not in documented and _is_ours(name, config):
            findings.add(
                "env-doc", place, lanes, f"{name} is read and not documented in {', '.join(config.documented_in)}"
            )
    for name, place in sorted(documented.items()):
        if name not in read and _is_ours(name, config) and not _is_mentioned(project, config, name):
            findings.add("env-doc", place, lanes, f"{name} is documented and read by nothing")


def _is_ours(name: str, config: Environment) -> bool:
    return not config.prefixes or name.startswith(config.prefixes)


def _documented(project: Project, config: Environment) -> Iterator[tuple[str, tuple[str, int, int]]]:
    for path in sorted(config.documented_in):
        data = project.files.others.get(path)
        if data is None:
            continue
        for number, text in reversed(list(enumerate(data.decode("utf-8", "replace").split("\n"), 1))):
            for match in _DOCUMENTED.finditer(text):
                yield match.group(1), (path, number, match.start(1) + 1)


def _searched(config: Environment, path: str) -> bool:
    return not config.sources or first_match(config.sources, path) is not None


def _reads(project: Project, config: Environment) -> Iterator[tuple[str, tuple[str, int, int]]]:
    for path, file in sorted(project.sources.items()):
        if _searched(config, path) and b"getenv" in file.data:
            yield from _matches(_C_READ, path, file.text.kept.split("\n"))
    for path, data in sorted(project.files.others.items()):
        if path.endswith(".py") and _searched(config, path) and (b"environ" in data or b"getenv" in data):
            yield from _matches(_PYTHON_READ, path, data.decode("utf-8", "replace").split("\n"))


def _matches(pattern: re.Pattern[str], path: str, lines: list[str]) -> Iterator[tuple[str, tuple[str, int, int]]]:
    for number, text in enumerate(lines, 1):
        for match in pattern.finditer(text):
            yield match.group(1), (path, number, match.start(1) + 1)


def _is_mentioned(project: Project, config: Environment, name: str) -> bool:
    """Whether any source, script or workflow names it: something may read it by a way that no pattern knows."""
    word = re.compile(rb"(?<![A-Z0-9_])" + name.encode() + rb"(?![A-Z0-9_])")
    if any(word.search(file.data) for file in project.sources.values()):
        return True
    return any(
        word.search(data)
        for path, data in project.files.others.items()
        if path not in config.documented_in and not path.endswith((".md", ".rst"))
    )

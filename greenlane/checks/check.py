"""`greenlane check`: every rule over every lane, with no toolkit; one report."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from greenlane.checks import suppress
from greenlane.checks.findings import Findings
from greenlane.checks.rules import families
from greenlane.checks.source import files
from greenlane.checks.source.cache import Cache, code_version
from greenlane.checks.source.files import Unparsed
from greenlane.checks.source.project import Project
from greenlane.errors import MatrixError
from greenlane.matrix.checks import ChecksConfig, Rule
from greenlane.matrix.globs import first_match
from greenlane.matrix.model import Matrix
from greenlane.record.model import Finding

_READ_OF_A_LANE = (
    "id",
    "row",
    "arch",
    "archs",
    "compiler",
    "compiler_version",
    "toolkit",
    "wavefront",
    "vendors",
    "macros",
    "sources",
    "include_dirs",
    "defines",
    "env",
)


@dataclass(frozen=True, slots=True)
class Report:
    """What the checks found, and what they could not look at."""

    lanes: tuple[str, ...]
    findings: tuple[Finding, ...]
    unparsed: tuple[Unparsed, ...] = ()
    suppressed: int = 0
    baseline: int = 0  # findings that the baseline holds
    withdrawn: int = 0  # findings that the compiler denied

    def for_lane(self, lane: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if lane in finding.lanes)

    @property
    def is_red(self) -> bool:
        return any(finding.severity != "note" for finding in self.findings)


def run_checks(
    matrix: Matrix, root: Path, lanes: Sequence[str] | None = None, rules: Sequence[str] | None = None
) -> Report:
    """The report for these lanes and rules (all by default); the analysis always covers the whole matrix."""
    _known("lane", lanes or (), [lane.id for lane in matrix.lanes])
    _known("rule", rules or (), [str(rule) for rule in Rule])
    return _narrowed(_whole(matrix, root), lanes, rules)


def _known(kind: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise MatrixError(f"no {kind} is called {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))


def _whole(matrix: Matrix, root: Path) -> Report:
    config = ChecksConfig.model_validate(dict(matrix.checks))
    collected = files.collect(root, _excluded(config))
    cache = Cache(_cache_folder(root))
    key = _key(matrix, collected.digest)
    known = cache.load("report")
    if isinstance(known, tuple) and known[0] == key and isinstance(known[1], Report):
        return known[1]
    with _no_collection():
        report = analyse(Project(matrix, collected, config, cache))
    cache.store("report", (key, report))
    return report


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Hundreds of thousands of small tuples and not one cycle: the collector would look at them in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def analyse(project: Project) -> Report:
    """Runs every rule that isn't off."""
    project.load_facts()
    lanes = tuple(lane.id for lane in project.lanes)
    findings = Findings(lanes, project.config)
    off = {str(rule) for rule in project.config.off}
    for family in families():
        if not off.issuperset(family.RULES):
            family.check(project, findings)
    judged = [
        finding
        for finding in findings.result()
        if finding.rule not in off and first_match(project.config.vendored, finding.file) is None
    ]
    kept, suppressed = suppress.apply(project, judged)
    unparsed = (*project.files.problems, *project.unparsed())
    return Report(lanes, tuple(kept), tuple(sorted(unparsed, key=lambda entry: (entry.file, entry.line))), suppressed)


def _excluded(config: ChecksConfig) -> Callable[[str], bool]:
    return lambda path: first_match(config.exclude, path) is not None


def _key(matrix: Matrix, digest: str) -> str:
    lanes = [tuple(str(getattr(lane, name)) for name in _READ_OF_A_LANE) for lane in matrix.lanes]
    parts = (code_version(), digest, repr(lanes), repr(matrix.constraints), repr(matrix.checks), *_environment())
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def _environment() -> tuple[str, ...]:
    """What the rules read beside files: the text of the pull request."""
    body = os.environ.get("GREENLANE_PR_BODY", "")
    try:
        return (body, Path(body).read_text(errors="replace")) if body else ()
    except OSError:
        return (body,)


def _cache_folder(root: Path) -> Path | None:
    """Outside of the project: what lies in there may come from a stranger, and pickles are believed."""
    base = os.environ.get("XDG_CACHE_HOME") or (f"{os.environ['HOME']}/.cache" if os.environ.get("HOME") else "")
    if not base or not Path(base).is_absolute():
        return None
    name = hashlib.blake2b(str(root.resolve()).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return Path(base) / "greenlane" / "checks" / name


def _narrowed(report: Report, lanes: Sequence[str] | None, rules: Sequence[str] | None) -> Report:
    findings = report.findings
    if rules:
        findings = tuple(finding for finding in findings if finding.rule in rules)
    if lanes:
        findings = tuple(
            finding.model_copy(update={"lanes": tuple(lane for lane in finding.lanes if lane in lanes)})
            for finding in findings
            if set(finding.lanes) & set(lanes)
        )
    return replace(report, lanes=tuple(lanes) if lanes else report.lanes, findings=findings)


def command(arguments: Namespace) -> int:
    from greenlane.checks import verb

    return verb.command(arguments)

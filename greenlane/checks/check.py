"""`greenlane check`: every rule over every lane, with no toolkit; one report."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from greenlane.checks import changes, suppress
from greenlane.checks.findings import Findings
from greenlane.checks.report import Report
from greenlane.checks.rules import RuleFamily, file_families, tree_families
from greenlane.checks.source import files
from greenlane.checks.source.cache import Cache, code_version
from greenlane.checks.source.project import Project, about
from greenlane.errors import MatrixError
from greenlane.matrix.checks import ChecksConfig, Rule
from greenlane.matrix.globs import first_match
from greenlane.matrix.model import Matrix


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


def project_of(matrix: Matrix, root: Path) -> Project:
    """The project with its facts, as the last run left them where it is still the same."""
    config = ChecksConfig.model_validate(dict(matrix.checks))
    project = Project(matrix, files.collect(root, _excluded(config)), config, Cache(_cache_folder(root)))
    project.load_facts()
    return project


def analyse(project: Project) -> Report:
    """Runs every rule that isn't off: over the files that a change may concern, or over all."""
    findings = Findings([lane.id for lane in project.lanes], project.config)
    project.load_facts()
    concerned = changes.concerned(project)
    if concerned is None:
        if project.base is not None:
            project.begin_anew()
            project.load_facts()
        _look(project, findings, project.read_files)
        _look_at_tree(project, findings, None)
        project.keep(findings.by_owner)
    else:
        assert project.base is not None
        findings.by_owner.update(project.base.drafts)
        _look(project, findings, concerned)
        _look_at_tree(project, findings, project.memory.changed)
    return _report(project, findings)


def analyse_some(project: Project, paths: Iterable[str]) -> Report:
    """Only what the rules say of these files; facts must be loaded."""
    findings = Findings([lane.id for lane in project.lanes], project.config)
    _look(project, findings, paths)
    return _report(project, findings)


def _look(project: Project, findings: Findings, paths: Iterable[str]) -> None:
    chosen = [family for family in file_families() if _is_on(project, family)]
    for path in sorted(paths):
        for family in chosen:
            family.check_file(project, path, findings)
        findings.close(path)


def _look_at_tree(project: Project, findings: Findings, changed: Iterable[str] | None) -> None:
    """`changed`: what differs from the run whose drafts stand; None where none do."""
    for family in tree_families():
        if _is_on(project, family) and (changed is None or family.is_touched(project, changed)):
            family.check_tree(project, findings)
            findings.close(f"\0{family.RULES[0]}")  # no file is called so


def _is_on(project: Project, family: RuleFamily) -> bool:
    return not {str(rule) for rule in project.config.off}.issuperset(family.RULES)


def _report(project: Project, findings: Findings) -> Report:
    off = {str(rule) for rule in project.config.off}
    judged = [
        finding
        for finding in findings.result()
        if finding.rule not in off and first_match(project.config.vendored, finding.file) is None
    ]
    kept, suppressed = suppress.apply(project, judged)
    unparsed = (*project.files.problems, *project.unparsed())
    lanes = tuple(lane.id for lane in project.lanes)
    return Report(lanes, tuple(kept), tuple(sorted(unparsed, key=lambda entry: (entry.file, entry.line))), suppressed)


def _excluded(config: ChecksConfig) -> Callable[[str], bool]:
    return lambda path: first_match(config.exclude, path) is not None


def _key(matrix: Matrix, digest: str) -> str:
    parts = (code_version(), digest, *about(matrix), *_environment())
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

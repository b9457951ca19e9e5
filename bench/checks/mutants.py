"""Break a tree on purpose, a seeded fault at a time, and count how many of them the checks find.

    python bench/checks/mutants.py TREE --matrix FILE [--count 200] [--seed 1] [--judge FILE] [--verdicts FILE]

Only mutants that really break a lane count: judge.py asks each lane's compiler, and --verdicts keeps its answers.
Such a mutant counts as found when a red finding appears that the unbroken tree doesn't have.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from judge import Judge  # noqa: E402

from greenlane.checks import check as checking  # noqa: E402
from greenlane.checks.source import files as collecting  # noqa: E402
from greenlane.checks.source.cache import Cache  # noqa: E402
from greenlane.checks.source.facts import Facts, Function, Trait  # noqa: E402
from greenlane.checks.source.index import SliceKey  # noqa: E402
from greenlane.checks.source.project import Project  # noqa: E402
from greenlane.checks.source.slices import enclosing  # noqa: E402
from greenlane.checks.source.view import LaneView  # noqa: E402
from greenlane.matrix import load  # noqa: E402
from greenlane.matrix.checks import ChecksConfig  # noqa: E402
from greenlane.matrix.globs import first_match  # noqa: E402
from greenlane.matrix.model import Matrix  # noqa: E402


class Mutant(NamedTuple):
    kind: str
    file: str
    line: int
    edits: tuple[tuple[int, str], ...]  # line, what stands there instead
    name: str = ""  # of a definition that is renamed
    renamed_in: tuple[str, ...] = ()  # lanes

    @property
    def key(self) -> str:
        """Names a mutant without a line of the tree's own text."""
        return hashlib.blake2b(repr(self).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()

    def applied(self, data: bytes) -> bytes:
        lines = data.decode("latin-1").split("\n")
        for line, text in self.edits:
            lines[line - 1] = text
        return "\n".join(lines).encode("latin-1")


def analyse(matrix: Matrix, root: Path, cache: Path) -> tuple[Project, checking.Report]:
    config = ChecksConfig.model_validate(dict(matrix.checks))
    found = collecting.collect(root, lambda path: first_match(config.exclude, path) is not None)
    project = Project(matrix, found, config, Cache(cache))
    return project, checking.analyse(project)


class Near:
    """Looks at the mutated file, what reads it, what it reads and what names its renamed function: never finds more
    than a whole run would. Facts of slices that stay the same are kept between mutants."""

    def __init__(self, matrix: Matrix, root: Path, cache: Path) -> None:
        self._matrix = matrix
        self._root = root
        self._cache = cache
        self._facts: dict[SliceKey, Facts] = {}

    def report(self, mutant: Mutant) -> checking.Report:
        config = ChecksConfig.model_validate(dict(self._matrix.checks))
        found = collecting.collect(self._root, lambda path: first_match(config.exclude, path) is not None)
        project = Project(self._matrix, found, config, Cache(self._cache))
        project.load_facts(self._facts)
        paths = {mutant.file, *(project.mentioning(mutant.name) if mutant.name else ())}
        for view in project.views_of(mutant.file):
            paths.update(project.readers(view, mutant.file), view.reach(mutant.file))
        return checking.analyse_some(project, paths & set(project.read_files))


def arguments_added(project: Project) -> Iterator[Mutant]:
    """One argument more at a call of a function that the project declares."""
    for view in project.views:
        functions = project.functions(view)
        for path in view.units:
            facts = project.facts(view, path)
            for call in facts.calls:
                known = functions.of(call.name)
                if not known or call.arity < 2 or call.name in project.macro_names(view) or call.receiver is not None:
                    continue
                if any(f.variadic or f.accepts(call.arity + 1) for _, f in known) or not project.is_judged(
                    view, path, call.line
                ):
                    continue
                if not any(file in view.reach(path) for file, _ in known):
                    continue
                line = project.sources[path].raw_lines[call.line - 1]
                at = line.find(call.name + "(", call.column - 1)
                if at >= 0:
                    cut = at + len(call.name) + 1
                    yield Mutant("argument added", path, call.line, ((call.line, line[:cut] + "0, " + line[cut:]),))


def guards_negated(project: Project) -> Iterator[Mutant]:
    """The condition of a guard over lane macros, turned round."""
    for path, _ in project.in_scope():
        file = project.sources[path]
        for chain in file.structure.chains:
            directive = file.structure.directives[chain.arms[0].directive]
            names = set(re.findall(r"[A-Za-z_]\w*", directive.argument))
            if not names & _lane_macros(project) or directive.line != directive.last:
                continue
            swapped = {"ifdef": "ifndef", "ifndef": "ifdef"}.get(directive.kind)
            line = file.raw_lines[directive.line - 1]
            text = line.replace(directive.kind, swapped, 1) if swapped else f"#if !({directive.argument})"
            yield Mutant("guard negated", path, directive.line, ((directive.line, text),))


def includes_moved(project: Project) -> Iterator[Mutant]:
    """An #include put on the other side of a guard over lane macros: out of it, or into the next one below."""
    for path, views in project.in_scope():
        file = project.sources[path]
        inside = [chain for chain in file.structure.chains if _asks(project, chain.arms[0].condition)]
        for edge in views[0].edges(path):
            line = edge.include.line
            here = file.raw_lines[line - 1]
            around = [file.structure.chains[index] for index, _ in enclosing(file.structure, line)]
            outer = next((chain for chain in around if chain in inside and chain.first > 2), None)
            if outer is not None:
                opener = file.raw_lines[outer.first - 1]
                edits = ((line, ""), (outer.first, f"{here.strip()}\n{opener}"))
                yield Mutant("include moved", path, outer.first, edits)
                continue
            below = next((chain for chain in inside if chain.first > line), None)
            if below is not None and edge.path is not None and not [chain for chain in around if chain in inside]:
                opener = file.raw_lines[below.first - 1]
                edits = ((line, ""), (below.first, f"{opener}\n{here.strip()}"))
                yield Mutant("include moved", path, line, edits)


def _asks(project: Project, text: str) -> bool:
    return bool(set(re.findall(r"[A-Za-z_]\w*", text)) & _lane_macros(project))


def _lane_macros(project: Project) -> set[str]:
    """Macros by which lanes differ, and what excludes them."""
    known = {name for lane in project.lanes for name in lane.macros}
    mentioned = [set(re.findall(r"[A-Za-z_]\w*", text)) for text in project.matrix.constraints]
    return known | {name for names in mentioned if names & known for name in names & project.universe}


def _lands_in_a_function(project: Project, mutant: Mutant) -> bool:
    """No mistake puts an #include there."""
    return mutant.kind == "include moved" and any(
        function.body and function.body < line <= function.last
        for view in project.views_of(mutant.file)
        for function in project.facts(view, mutant.file).functions
        for line, text in mutant.edits
        if text
    )


def callees_renamed(project: Project) -> Iterator[Mutant]:
    """A definition that has another name in one lane, while its callers there keep the old one."""
    for path, views in project.in_scope():
        for function in project.facts(views[0], path).functions:
            if function.traits & (Trait.MEMBER | Trait.OPERATOR) or not function.has(Trait.DEFINITION):
                continue
            line = project.sources[path].raw_lines[function.line - 1]
            at = line.find(function.name + "(", function.column - 1)
            if function.name == "main" or at < 0 or line.rstrip().endswith("\\"):
                continue
            renamed = line[:at] + function.name + "_moved" + line[at + len(function.name) :]
            if len(views) < len(project.views) and _has_twin(project, path, function.name):
                if not project.sources[path].is_header and _is_called(project, path, function):
                    yield Mutant(
                        "callee renamed",
                        path,
                        function.line,
                        ((function.line, renamed),),
                        function.name,
                        tuple(view.id for view in views),
                    )
                continue
            macro = _macro_of_one_lane(project, views)
            if macro is not None and _is_called(project, path, function):
                text = f"#ifdef {macro}\n{renamed}\n#else\n{line}\n#endif"
                yield Mutant(
                    "callee renamed",
                    path,
                    function.line,
                    ((function.line, text),),
                    function.name,
                    _on(views, macro),
                )


def _macro_of_one_lane(project: Project, views: Sequence[LaneView]) -> str | None:
    """A macro that is on in some of these lanes and off in others."""
    for name in sorted(_lane_macros(project), reverse=True):
        if 0 < len(_on(views, name)) < len(views):
            return name
    return None


def _on(views: Sequence[LaneView], macro: str) -> tuple[str, ...]:
    """The lanes that have a macro."""
    return tuple(view.id for view in views if view.lane.macros.get(macro) not in (None, "0"))


def _has_twin(project: Project, path: str, name: str) -> bool:
    return any(
        file != path and function.has(Trait.DEFINITION)
        for view in project.views
        if path not in view.units
        for file, function in project.functions(view).of(name)
    )


def _is_called(project: Project, path: str, function: Function) -> bool:
    """Called from somewhere beside itself, in each lane that reads the file."""
    return all(
        any(
            call.name == function.name and not (other == path and function.first <= call.line <= function.last)
            for other in project.lane_files[view.id]
            for call in project.facts(view, other).calls
        )
        for view in project.views
        if path in project.lane_files[view.id]
    )


KINDS: tuple[Callable[[Project], Iterator[Mutant]], ...] = (
    arguments_added,
    guards_negated,
    includes_moved,
    callees_renamed,
)


def in_turn(project: Project, seed: int) -> Iterator[Mutant]:
    """Mutants of each kind in turn, in an order that the seed decides; what one kind lacks the others give."""
    random_ = random.Random(seed)
    pools = []
    for kind in KINDS:
        pool = sorted(set(kind(project)))
        random_.shuffle(pool)
        pools.append(pool)
    while any(pools):
        for pool in pools:
            mutant = pool.pop() if pool else None
            if mutant is not None and not _lands_in_a_function(project, mutant):
                yield mutant


def identities(report: checking.Report) -> Counter[tuple[str, str, str, str]]:
    return Counter(
        (f.rule, f.file, f.message, lane) for f in report.findings if f.severity != "note" for lane in f.lanes
    )


class Verdicts:
    """What the compilers said of each mutant, kept in a file: by key, the lane that no longer builds, or null.

    The compiler's own words are told but not kept: they quote the tree.
    """

    def __init__(self, file: Path | None, judge: Judge | None) -> None:
        self._file = file
        self._judge = judge
        self._known: dict[str, str | None] = json.loads(file.read_text()) if file is not None and file.exists() else {}

    def knows(self, mutant: Mutant) -> bool:
        return mutant.key in self._known

    def breaks(self, project: Project, root: Path, mutant: Mutant) -> str | None:
        """Whether a lane stops building; without a judge and a file every mutant counts as one that does."""
        if mutant.key in self._known:
            return self._known[mutant.key]
        if self._judge is None:
            return "not judged" if self._file is None else None
        said = self._judge.broken(project, mutant, lambda: broken(root, mutant))
        self._known[mutant.key] = None if said is None else said.partition(":")[0]
        if self._file is not None:
            self._file.write_text(json.dumps(self._known, indent=0, sort_keys=True) + "\n")
        return said


@contextlib.contextmanager
def broken(root: Path, mutant: Mutant) -> Iterator[None]:
    """The tree with the fault, for a while."""
    path = root / mutant.file
    old = path.read_bytes()
    path.write_bytes(mutant.applied(old))
    try:
        yield
    finally:
        path.write_bytes(old)


class Outcome(NamedTuple):
    mutant: Mutant
    said: str  # by the compiler
    found: frozenset[str]  # rules that speak


def run(
    matrix_file: Path,
    root: Path,
    count: int,
    seed: int,
    verdicts: Verdicts,
    scratch: Path,
    check: bool = True,
    verbose: bool = False,
) -> tuple[list[Outcome], int]:
    """Outcomes of the first `count` mutants that break a lane, and how many were thrown away because they don't."""
    matrix = load(matrix_file)
    project, clean = analyse(matrix, root, scratch / "cache")
    before = identities(clean)
    near = Near(matrix, root, scratch / "cache")
    outcomes: list[Outcome] = []
    harmless = 0
    for mutant in in_turn(project, seed):
        if len(outcomes) >= count:
            break
        said = verdicts.breaks(project, root, mutant)
        if said is None:
            harmless += verdicts.knows(mutant)
            continue
        with broken(root, mutant):
            report = near.report(mutant) if check else clean
        outcomes.append(Outcome(mutant, said, frozenset(rule for rule, *_ in identities(report) - before)))
        if verbose:
            word = ", ".join(sorted(outcomes[-1].found)) or "MISSED"
            print(f"{word}: {mutant.kind} {mutant.file}:{mutant.line} [{said}]", flush=True)
    return outcomes, harmless


def table(outcomes: Sequence[Outcome], harmless: int) -> str:
    lines = []
    for kind in [*sorted({outcome.mutant.kind for outcome in outcomes}), "all"]:
        chosen = [outcome for outcome in outcomes if kind in {outcome.mutant.kind, "all"}]
        found = sum(bool(outcome.found) for outcome in chosen)
        lines.append(f"{kind:15} {found:4} of {len(chosen):3} ({100 * found / len(chosen):.0f} %)")
    return "\n".join([*lines, f"{harmless} more were thrown away: no lane stops building"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--matrix", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--judge", type=Path, help="how each lane's compiler reads a unit; the tree is changed in place"
    )
    parser.add_argument("--verdicts", type=Path, help="what an earlier --judge found; added to where there is a judge")
    parser.add_argument("--judge-only", action="store_true", help="fill the file of --verdicts and check nothing")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--scratch", type=Path, help="folder that keeps what was parsed for the next call")
    given = parser.parse_args()
    judge = Judge(given.judge, given.tree) if given.judge else None
    with tempfile.TemporaryDirectory() as scratch:
        root = given.tree
        if judge is None:
            root = Path(scratch) / "tree"
            shutil.copytree(given.tree, root, ignore=shutil.ignore_patterns(".git", "variants"))
        matrix = given.matrix or given.tree / "matrix.yaml"
        outcomes, harmless = run(
            matrix,
            root,
            given.count,
            given.seed,
            Verdicts(given.verdicts, judge),
            given.scratch or Path(scratch),
            not given.judge_only,
            given.verbose,
        )
    print(table(outcomes, harmless))


if __name__ == "__main__":
    main()

"""Break a tree on purpose, a seeded fault at a time, and count how many of them the checks find.

    python bench/checks/mutants.py TREE --matrix FILE [--count 200] [--seed 1]

A mutant counts as found when a finding appears that the unbroken tree doesn't have.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from greenlane.checks import check as checking  # noqa: E402
from greenlane.checks.source import files as collecting  # noqa: E402
from greenlane.checks.source.cache import Cache  # noqa: E402
from greenlane.checks.source.facts import Trait  # noqa: E402
from greenlane.checks.source.project import Project  # noqa: E402
from greenlane.checks.source.slices import Life  # noqa: E402
from greenlane.matrix import load  # noqa: E402
from greenlane.matrix.checks import ChecksConfig  # noqa: E402
from greenlane.matrix.globs import first_match  # noqa: E402
from greenlane.matrix.model import Matrix  # noqa: E402


class Mutant(NamedTuple):
    kind: str
    file: str
    line: int
    column: int
    text: str  # the new line


def analyse(matrix: Matrix, root: Path, cache: Path) -> tuple[Project, checking.Report]:
    config = ChecksConfig.model_validate(dict(matrix.checks))
    found = collecting.collect(root, lambda path: first_match(config.exclude, path) is not None)
    project = Project(matrix, found, config, Cache(cache))
    return project, checking.analyse(project)


def arguments_added(project: Project) -> Iterator[Mutant]:
    """One argument more at a call of a function that the project declares."""
    for view in project.views:
        functions = project.functions(view)
        for path in view.units:
            facts = project.facts(view, path)
            for call in facts.calls:
                known = functions.get(call.name)
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
                    yield Mutant("argument added", path, call.line, call.column, line[:cut] + "0, " + line[cut:])


def guards_negated(project: Project) -> Iterator[Mutant]:
    """The condition of a guard over lane macros, turned round."""
    for path, _ in project.in_scope():
        file = project.sources[path]
        for chain in file.structure.chains:
            directive = file.structure.directives[chain.arms[0].directive]
            names = set(re.findall(r"[A-Za-z_]\w*", directive.argument))
            if not names & project.universe or directive.line != directive.last:
                continue
            swapped = {"ifdef": "ifndef", "ifndef": "ifdef"}.get(directive.kind)
            line = file.raw_lines[directive.line - 1]
            if swapped:
                yield Mutant("guard negated", path, directive.line, 1, line.replace(directive.kind, swapped, 1))
            elif directive.kind == "if":
                yield Mutant("guard negated", path, directive.line, 1, f"#if !({directive.argument})")


def includes_moved(project: Project) -> Iterator[Mutant]:
    """A guarded include of a vendor's header, or of a vendor's folder, put in front of its guard."""
    from greenlane.checks.source import vendors
    from greenlane.checks.source.slices import enclosing

    for path, views in project.in_scope():
        file = project.sources[path]
        for view in views:
            for edge in view.edges(path):
                around = enclosing(file.structure, edge.include.line)
                owner = vendors.of_header(edge.include.target) or (edge.path and vendors.of_path(edge.path))
                if owner and around and edge.life == Life.LIVE:
                    first = file.structure.chains[around[0][0]].first
                    if first > 2:
                        opener = file.raw_lines[first - 1]
                        moved = file.raw_lines[edge.include.line - 1].strip()
                        yield Mutant("include moved", path, first, 1, f"{moved}\n{opener}")


def callees_renamed(project: Project) -> Iterator[Mutant]:
    """A definition renamed in the lanes that compile it, where other lanes keep theirs."""
    for path, views in project.in_scope():
        if len(views) == len(project.views) or project.sources[path].is_header:
            continue
        for function in project.facts(views[0], path).functions:
            if function.traits & (Trait.INTERNAL | Trait.MEMBER | Trait.TEMPLATE | Trait.OPERATOR) or not function.has(
                Trait.DEFINITION
            ):
                continue
            if not _has_twin(project, path, function.name):
                continue  # declared and nowhere defined would belong to a library
            if function.name == "main" or not _is_called_elsewhere(project, path, function.name):
                continue
            line = project.sources[path].raw_lines[function.line - 1]
            at = line.find(function.name, function.column - 1)
            if at >= 0:
                text = line[:at] + function.name + "_moved" + line[at + len(function.name) :]
                yield Mutant("callee renamed", path, function.line, function.column, text)


def _has_twin(project: Project, path: str, name: str) -> bool:
    return any(
        file != path and function.has(Trait.DEFINITION)
        for view in project.views
        if path not in view.units
        for file, function in project.functions(view).get(name, ())
    )


def _is_called_elsewhere(project: Project, path: str, name: str) -> bool:
    return any(
        name in {call.name for call in project.facts(view, other).calls}
        for view in project.views
        for other in view.units
        if other != path and path in view.units
    )


KINDS: tuple[Callable[[Project], Iterator[Mutant]], ...] = (
    arguments_added,
    guards_negated,
    includes_moved,
    callees_renamed,
)


def pick(project: Project, count: int, seed: int) -> list[Mutant]:
    """As many of each kind as there are, up to an equal share; what one kind lacks the others give."""
    random_ = random.Random(seed)
    pools = []
    for kind in KINDS:
        pool = sorted(set(kind(project)))
        random_.shuffle(pool)
        pools.append(pool)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(pools):
        for pool in pools:
            if pool and len(chosen) < count:
                chosen.append(pool.pop())
    return chosen


def identities(report: checking.Report) -> Counter[tuple[str, str, str, str]]:
    return Counter(
        (f.rule, f.file, f.message, lane) for f in report.findings if f.severity != "note" for lane in f.lanes
    )


def run(matrix_file: Path, tree: Path, count: int, seed: int, verbose: bool) -> Counter[tuple[str, bool]]:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "tree"
        shutil.copytree(tree, root, ignore=shutil.ignore_patterns(".git", "variants"))
        matrix = load(matrix_file)
        project, clean = analyse(matrix, root, Path(scratch) / "cache")
        before = identities(clean)
        results: Counter[tuple[str, bool]] = Counter()
        for mutant in pick(project, count, seed):
            path = root / mutant.file
            old = path.read_bytes()
            lines = old.decode("latin-1").split("\n")
            lines[mutant.line - 1] = mutant.text
            path.write_bytes("\n".join(lines).encode("latin-1"))
            _, report = analyse(matrix, root, Path(scratch) / "cache")
            path.write_bytes(old)
            found = bool(identities(report) - before)
            results[(mutant.kind, found)] += 1
            if verbose and not found:
                print(f"missed: {mutant.kind} {mutant.file}:{mutant.line}: {mutant.text.strip()[:100]}")
        return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--matrix", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    results = run(
        arguments.matrix or arguments.tree / "matrix.yaml",
        arguments.tree,
        arguments.count,
        arguments.seed,
        arguments.verbose,
    )
    total = sum(results.values())
    found = sum(count for (_, hit), count in results.items() if hit)
    for kind in sorted({kind for kind, _ in results}):
        print(f"{kind:15} {results[(kind, True)]:4} of {results[(kind, True)] + results[(kind, False)]}")
    print(f"{'all':15} {found:4} of {total} ({100 * found / max(1, total):.0f} %)")


if __name__ == "__main__":
    main()

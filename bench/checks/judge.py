"""Ask compilers whether a tree that was broken on purpose really fails to build in a lane.

A unit is read by its lane's own compiler (`-fsyntax-only`). New errors, and new
warnings of the kinds that a `-Werror` build stops at, count. Where a unit still compiles, its symbols are compared: one
that is gone and that another unit of the lane asks for breaks the link.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

import yaml

from greenlane.checks.source.project import Project
from greenlane.checks.source.view import LaneView

_SAID = re.compile(r":\d+:\d+: ((?:fatal )?error: [^\n]*)")
_LIMIT_S = 180
_MOST_UNITS = 3  # of those that read a header, the ones that mention most of its names first
_WARNINGS = "-Wno-everything -Werror=unused-function -Werror=return-type -Werror=undefined-internal"
_DEFINED = re.compile(r"^define (?!internal|linkonce|weak|available)[^@\n]*@\"?([\w.$]+)", re.M)
_DECLARED = re.compile(r"^declare [^@\n]*@\"?([\w.$]+)", re.M)


class Mutant(Protocol):
    """What the judge has to know of a planted fault."""

    @property
    def kind(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def name(self) -> str: ...  # of a definition that is renamed
    @property
    def renamed_in(self) -> tuple[str, ...]: ...  # lanes


class Symbols(NamedTuple):
    defined: frozenset[str]
    wanted: frozenset[str]


class Judge:
    def __init__(self, spec: Path, root: Path) -> None:
        known = yaml.safe_load(spec.read_text())
        self._wrap: list[str] = shlex.split(known.get("wrap", ""))
        self._lanes: dict[str, dict[str, list[str]]] = known["lanes"]
        self._root = root
        self._base: dict[tuple[str, str, bool], Counter[str]] = {}
        self._symbols: dict[tuple[str, str], Symbols] = {}

    def broken(self, project: Project, mutant: Mutant, fault: Callable[[], AbstractContextManager[None]]) -> str | None:
        """A lane that no longer builds with the fault, and why; None where every lane still does."""
        path = mutant.file
        own = mutant.kind != "include moved" and any(path in view.units for view in project.views)
        for view in project.views:
            jobs = [(view.id, unit, own) for unit in self._units(project, view, path)]
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(self._baseline, jobs))
                with fault():
                    said = next(filter(None, list(pool.map(self._news, jobs))), None)
            if said:
                return f"{view.id}: {said}"
        for view in project.views:
            lost = None
            if view.id in self._lanes and view.id in mutant.renamed_in:
                lost = self._wants(project, view, path, mutant.name)
            elif view.id in self._lanes and path in view.units and mutant.kind == "guard negated":
                lost = self._lost_symbol(project, view, path, fault)
            if lost:
                return f"{view.id}: nothing defines {lost}"
        return None

    def _units(self, project: Project, view: LaneView, path: str) -> list[str]:
        if view.id not in self._lanes:
            return []
        if path in view.units:
            return [path]
        words = set(re.findall(rb"[A-Za-z_]\w{3,}", project.sources[path].data))

        def mentions(unit: str) -> int:
            return len(words & set(re.findall(rb"[A-Za-z_]\w{3,}", project.sources[unit].data)))

        return sorted(project.units_reaching(view, path), key=mentions, reverse=True)[:_MOST_UNITS]

    def _command(self, lane: str, unit: str, own: bool) -> str:
        """How a lane reads a unit; where the fault is in the unit itself, what it includes may be compiled already."""
        suffix = unit.rpartition(".")[2]
        known = self._lanes[lane]
        return known.get(f"{suffix} alone", known[suffix]) if own else known[suffix]

    def _news(self, job: tuple[str, str, bool]) -> str | None:
        """What the compiler says that it did not say of the unbroken unit."""
        before = self._baseline(job)
        if any(text.startswith("fatal") or text == "timed out" for text in before):
            return None  # the unit can't be judged here
        return next(iter(sorted(self._read(job) - before)), None)

    def _baseline(self, job: tuple[str, str, bool]) -> Counter[str]:
        if job not in self._base:
            self._base[job] = self._read(job)
        return self._base[job]

    def _read(self, job: tuple[str, str, bool]) -> Counter[str]:
        words = f"{self._command(*job)} -fsyntax-only -ferror-limit=0 -fno-color-diagnostics {_WARNINGS} {job[1]}"
        code, said = self._run(words, error=True)
        found = Counter(_SAID.findall(said))
        if not found and code != 0:
            found["timed out" if code is None else "fatal: the compiler failed"] += 1
        return found

    def _run(self, words: str, error: bool) -> tuple[int | None, str]:
        try:
            ran = subprocess.run(
                [*self._wrap, "sh", "-c", words],
                cwd=self._root, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, ""
        return ran.returncode, ran.stderr if error else ran.stdout

    # The link.

    def _symbols_of(self, lane: str, unit: str) -> Symbols:
        key = (lane, unit)
        if key not in self._symbols:
            self._symbols[key] = self._emit(lane, unit)
        return self._symbols[key]

    def _emit(self, lane: str, unit: str) -> Symbols:
        flags = "-w -S -emit-llvm -Xclang -disable-llvm-passes -o -"
        words = f"{self._command(lane, unit, True)} {flags} {unit} | grep -E '^(define|declare)'"
        said = self._run(words, error=False)[1]
        return Symbols(frozenset(_DEFINED.findall(said)), frozenset(_DECLARED.findall(said)))

    def _wants(self, project: Project, view: LaneView, path: str, name: str) -> str | None:
        """The symbol of a definition that is gone, where another unit asks for it."""
        for unit in view.units:
            if unit != path and name.encode() in project.sources[unit].data:
                for symbol in self._symbols_of(view.id, unit).wanted:
                    if _plain(symbol) == name:
                        return symbol
        return None

    def _lost_symbol(
        self, project: Project, view: LaneView, path: str, fault: Callable[[], AbstractContextManager[None]]
    ) -> str | None:
        before = self._symbols_of(view.id, path)
        with fault():
            now = self._emit(view.id, path)
        lost = before.defined - now.defined
        if not now.defined | now.wanted or not lost:
            return None
        for name in sorted(lost):
            plain = _plain(name).encode()
            for unit in view.units:
                data = project.sources[unit].data
                if unit != path and plain in data and name in self._symbols_of(view.id, unit).wanted:
                    return name
        return next(iter(sorted(lost & now.wanted)), None)


def _plain(symbol: str) -> str:
    """The last name of a mangled symbol's first part."""
    match = re.match(r"_ZN?K?(\d+)", symbol)
    if not match:
        return symbol
    at, name = match.end(1), ""
    length = int(match.group(1))
    while length:
        name = symbol[at : at + length]
        at += length
        more = re.match(r"\d+", symbol[at:]) if symbol.startswith("_ZN") else None
        length = int(more.group()) if more else 0
        at += len(more.group()) if more else 0
    return name

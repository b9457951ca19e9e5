"""Names that a lane uses and lacks: declared for other lanes, in a header unread, or defined in sources left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from greenlane.checks.findings import Findings
from greenlane.checks.source import vendors
from greenlane.checks.source.facts import Facts, Trait
from greenlane.checks.source.includes import is_standard
from greenlane.checks.source.places import maybe_lost, occurrences
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life, enclosing, include_guard
from greenlane.checks.source.view import LaneView
from greenlane.record.model import Suggestion

RULES = ("link-presence", "missing-include", "guard-missing-arm")

_KEYWORDS = frozenset(
    """alignas alignof asm auto bool break case catch char class co_await co_return co_yield concept const
    const_cast consteval constexpr constinit continue decltype default defined delete do double dynamic_cast
    else enum explicit export extern false final float for friend goto if inline int long mutable namespace new
    noexcept nullptr operator override private protected public register reinterpret_cast requires return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename union unsigned using virtual void volatile wchar_t while main size_t
    assert offsetof""".split()
)


_DECLARED = ("functions", "objects", "macros", "classes")
_FAMILY = 5  # names that begin alike
_VENDOR_WORDS = frozenset(
    """cuda cu cub hip nv nvcuda amd rocm roc mu musa cooperative atomic make load store wmma warp thread block grid
    float int uint half bfloat16 double long short char uchar ushort ulong longlong vector dim""".split()
)
_FOREIGN = frozenset(
    "std thrust cub cooperative_groups cg nvcuda cuda hip hipcub rocprim rocwmma cutlass cute at c10 torch".split()
)
_ARGUMENT = re.compile(r"\b(?:typename|class|struct|namespace)\s+(?:\.\.\.\s*)?(\w+)\s*[,>={;:]")


def check_file(project: Project, path: str, findings: Findings) -> None:
    lookup = project.once("lookup", project.views[0], lambda view: _Lookup(project))
    for view in project.views_of(path):
        if path in view.unit_set:
            _lost_names(project, lookup, view, path, findings)
            _lost_definitions(project, lookup, view, path, findings)
            _nowhere(project, lookup, view, path, findings)


class _Lookup:
    """Sets of names by unit and lane, each computed once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._names: dict[tuple[str, str], frozenset[str]] = {}
        self._file_names: dict[tuple[str, str], frozenset[str]] = {}

    def file_names(self, view: LaneView, path: str) -> frozenset[str]:
        key = (view.id, path)
        if key not in self._file_names:
            macros = frozenset(define.name for define, _ in view.slice(path).defines)
            self._file_names[key] = self.project.facts(view, path).names | macros
        return self._file_names[key]

    def names(self, view: LaneView, unit: str) -> frozenset[str]:
        """Everything that a unit's files declare or define as a macro."""
        key = (view.id, unit)
        if key not in self._names:
            self._names[key] = frozenset().union(*(self.file_names(view, path) for path in view.reach(unit)))
        return self._names[key]

    def fields(self, view: LaneView, unit: str) -> frozenset[str]:
        """Names of members that are nothing else."""
        facts = [self.project.facts(view, path) for path in view.reach(unit)]
        fields = {field.name for known in facts for entry in known.classes for field in entry.fields}
        names = self.project.names(view)
        return frozenset(name for name in fields if not (names.has("functions", name) or names.has("macros", name)))

    def is_own(self, name: str) -> bool:
        """Whether no vendor would give something this name: snake case, of several words or of a family of names."""
        words = name.strip("_").split("_")
        if name.startswith("_") or len(words) < 2 or words[0].lower() in _VENDOR_WORDS or vendors.of_name(name):
            return False
        return len(words) > 2 or self._families[words[0]] >= _FAMILY

    @cached_property
    def _families(self) -> Counter[str]:
        """First words of all names that the lanes declare."""
        declared = {
            name for view in self.project.views for kind in _DECLARED for name in self.project.names(view).all(kind)
        }
        return Counter(name.partition("_")[0] for name in declared if "_" in name.strip("_"))

    @cached_property
    def pasted(self) -> frozenset[str]:
        """Pieces from which macros make names."""
        return frozenset(
            piece
            for entries in self.project.defines.values()
            for _, define in entries
            if "##" in define.body
            for pair in re.findall(r"(\w+)\s*##|##\s*(\w+)", define.body)
            for piece in pair
            if len(piece) > 2 and piece not in (define.params or ())
        )


# Declared in other lanes only.


def _lost_names(project: Project, lookup: _Lookup, view: LaneView, unit: str, findings: Findings) -> None:
    own = _state(view, unit)
    others = [
        other for other in project.views if other.id != view.id and unit in other.units and _state(other, unit) != own
    ]
    outside = view.externals(view.reach(unit)) if others else frozenset()
    for other in others:
        strange = outside - other.externals(other.reach(unit))
        if any(not vendors.of_header(target) and not is_standard(target) for target in strange):
            continue  # what the lane includes from elsewhere may declare it
        lost = lookup.names(other, unit) - lookup.names(view, unit)
        if strange or (view.allowed != other.allowed and any(map(vendors.of_header, outside))):
            # A vendor's header may declare what only looks like the project's.
            lost = frozenset(name for name in lost if lookup.is_own(name))
        if lost:
            _uses_of_lost(project, lookup, view, other, unit, lost, findings)


def _state(view: LaneView, unit: str) -> frozenset[tuple[str, object]]:
    return frozenset((path, view.slice(path).arms) for path in view.reach(unit))


def _uses_of_lost(
    project: Project,
    lookup: _Lookup,
    view: LaneView,
    other: LaneView,
    unit: str,
    lost: frozenset[str],
    findings: Findings,
) -> None:
    fields = lookup.fields(other, unit)
    for path, life in view.reach(unit).items():
        if life != Life.LIVE:
            continue
        facts = project.facts(view, path)
        for name in sorted(facts.tokens & lost):
            if (
                name in _KEYWORDS
                or name.startswith("__")
                or vendors.of_name(name) is not None
                or _is_own(project, view, path, name)
            ):
                continue
            for line, column in occurrences(project, view, path, name):
                if name in fields and not _is_in_member(facts, line):
                    continue  # a plain word, which something else may be called
                _report_lost(project, view, other, unit, path, (line, column), name, findings)


def _is_in_member(facts: Facts, line: int) -> bool:
    return any(function.has(Trait.MEMBER) and function.first <= line <= function.last for function in facts.functions)


def _is_own(project: Project, view: LaneView, path: str, name: str) -> bool:
    """Whether a file declares a name as the index doesn't list it: a local, a parameter, a template's argument."""
    for function in project.facts(view, path).functions:
        if any(local.name == name for local in function.locals) or any(param.name == name for param in function.params):
            return True
    return name in _template_names(project.sources[path].text.code)


@lru_cache(maxsize=5000)
def _template_names(code: str) -> frozenset[str]:
    return frozenset(_ARGUMENT.findall(code))


def _report_lost(
    project: Project,
    view: LaneView,
    other: LaneView,
    unit: str,
    path: str,
    place: tuple[int, int],
    name: str,
    findings: Findings,
) -> None:
    reach = view.reach(unit)
    declaring = sorted(file for file in other.reach(unit) if name in _names_in(project, other, file))
    hidden = [file for file in declaring if file in reach]
    if hidden:
        line = _declaration_line(project, other, hidden[0], name)
        if view.life(hidden[0], line) != Life.DEAD:
            return  # it is there, and the grammar lost it
        if _is_lonely_macro(project, hidden[0], name, line):
            _report_arm(project, view, path, place, name, hidden[0], line, findings)
            return
        findings.add(
            "link-presence",
            (path, *place),
            [view.id],
            f"{name!r} is used here, but what declares it in {hidden[0]} is guarded out of this lane",
            [(hidden[0], line, f"{name!r} is declared here, for other lanes")],
        )
        return
    if declaring:
        findings.add(
            "missing-include",
            (path, *place),
            [view.id],
            f"{name!r} is used here, but {declaring[0]}, which declares it, is not included",
            [(declaring[0], _declaration_line(project, other, declaring[0], name), f"{name!r} is declared here")],
            Suggestion(text=f"include {declaring[0]}"),
        )


def _names_in(project: Project, view: LaneView, path: str) -> Iterable[str]:
    return project.facts(view, path).names | {define.name for define, _ in view.slice(path).defines}


def _declaration_line(project: Project, view: LaneView, path: str, name: str) -> int:
    for define, _ in view.slice(path).defines:
        if define.name == name:
            return define.line
    for function in project.facts(view, path).functions:
        if function.name == name:
            return function.line
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    lines = project.sources[path].code_lines
    return next(
        (
            number
            for number, text in enumerate(lines, 1)
            if pattern.search(text) and view.life(path, number) != Life.DEAD
        ),
        1,
    )


def _is_lonely_macro(project: Project, path: str, name: str, line: int) -> bool:
    """A macro that several arms of a chain without #else define."""
    structure = project.sources[path].structure
    around = enclosing(structure, line)
    guard = include_guard(structure)
    if not around or name not in project.defines or (guard is not None and around[-1][0] == guard.chain):
        return False
    chain = structure.chains[around[-1][0]]
    lines = [
        define.line for file, define in project.defines[name] if file == path and chain.first < define.line < chain.last
    ]
    return len(lines) > 1 and not chain.has_else


def _report_arm(
    project: Project,
    view: LaneView,
    path: str,
    place: tuple[int, int],
    name: str,
    file: str,
    line: int,
    findings: Findings,
) -> None:
    structure = project.sources[file].structure
    chain = structure.chains[enclosing(structure, line)[-1][0]]
    findings.add(
        "guard-missing-arm",
        (file, chain.first, 1),
        [view.id],
        f"no arm of this chain is selected and there is no #else, so {name!r} stays undefined",
        [(path, place[0], f"{name!r} is used here")],
        Suggestion(text=f"add an #else that defines {name!r} or refuses to compile"),
    )


# Defined in the sources of other lanes only.


def _lost_definitions(project: Project, lookup: _Lookup, view: LaneView, unit: str, findings: Findings) -> None:
    facts = project.facts(view, unit)
    own = project.names(view)
    for name in sorted(facts.tokens):
        if (
            own.has("defined", name)
            or not own.has("functions", name)
            or own.has("macros", name)
            or (vendors.of_name(name) == "cuda" and name not in lookup.names(view, unit))
        ):
            continue
        elsewhere = [
            (other, files) for other in project.views if (files := project.names(other).files("defined", name))
        ]
        if (
            elsewhere
            and _is_declared_function(project, view, unit, name)
            and not _is_made_by_macro(project, lookup, view, name)
        ):
            _report_undefined(project, view, unit, name, elsewhere, findings)


def _is_declared_function(project: Project, view: LaneView, unit: str, name: str) -> bool:
    """Declared as a free function in what the unit reads, and as nothing else."""
    reach = view.reach(unit)
    declared = [entry for entry in project.functions(view).of(name) if entry[0] in reach]
    if not declared or any(function.has(Trait.MEMBER) or function.has(Trait.TEMPLATE) for _, function in declared):
        return False
    return not any(path in reach for path in project.names(view).files("objects", name)) and not _is_own(
        project, view, unit, name
    )


def _is_made_by_macro(project: Project, lookup: _Lookup, view: LaneView, name: str) -> bool:
    if any(name.startswith(piece) or name.endswith(piece) for piece in lookup.pasted):
        return True
    pattern = re.compile(rf"^\s*[A-Z][A-Z0-9_]+\s*\(.*\b{re.escape(name)}\b")
    return any(
        path in project.lane_files[view.id]
        and name in project.facts(view, path).outside
        and any(pattern.search(line) for line in project.sources[path].code_lines)
        for path in project.mentioning(name)
    )


def _report_undefined(
    project: Project,
    view: LaneView,
    unit: str,
    name: str,
    elsewhere: list[tuple[LaneView, tuple[str, ...]]],
    findings: Findings,
) -> None:
    if maybe_lost(project, view, project.lane_files[view.id], name):
        return
    other, files = elsewhere[0]
    file = sorted(files)[0]
    functions = [function for function in project.facts(view, unit).functions if function.name == name]
    weak = any("weak" in project.sources[unit].code_lines[function.line - 1] for function in functions)
    line = next(
        function.line
        for function in project.facts(other, file).functions
        if function.name == name and function.has(Trait.DEFINITION)
    )
    for at, column in sorted({*occurrences(project, view, unit, name), *_qualified_calls(project, view, unit, name)}):
        if (
            weak
            or any(function.first <= at <= function.last for function in functions)
            or _is_in_spare_code(project, view, unit, at)
        ):
            continue
        findings.add(
            "link-presence",
            (unit, at, column),
            [view.id],
            f"{name!r} is used here, but no source of this lane defines it",
            [(file, line, f"{name!r} is defined here, for other lanes")],
        )


def _qualified_calls(project: Project, view: LaneView, unit: str, name: str) -> Iterator[tuple[int, int]]:
    """Calls by a qualified name that leads to the project's own function."""
    scopes = project.scopes(view)
    for call in project.facts(view, unit).calls:
        meant = call.name == name and call.scope and call.receiver is None and scopes.qualified(unit, call.scope, name)
        if meant and project.is_judged(view, unit, call.line):
            yield call.line, call.column


def _is_in_spare_code(project: Project, view: LaneView, unit: str, line: int) -> bool:
    """Inside a template or an inline function, which may never be emitted; or in a mere declaration."""
    for function in project.facts(view, unit).functions:
        if function.first <= line <= function.last and (
            function.traits & (Trait.TEMPLATE | Trait.INLINE | Trait.SPECIALIZATION)
            or not function.has(Trait.DEFINITION)
        ):
            return True
    return False


# Declared nowhere.


def _nowhere(project: Project, lookup: _Lookup, view: LaneView, unit: str, findings: Findings) -> None:
    facts = project.facts(view, unit)
    if facts.problem is not None or facts.errors:
        return
    names = None
    closed = None
    for call in facts.calls:
        if call.receiver is not None:
            continue
        if call.scope not in {"", "::"}:
            _not_in_namespace(project, view, unit, call.scope, call.name, (call.line, call.column), findings)
            continue
        if closed is None:
            closed = (
                not view.externals(view.reach(unit))
                and not unit.endswith((".cu", ".hip", ".mu"))
                and not _has_gaps(project, view, unit)
            )
            names = lookup.names(view, unit)
        if not closed or names is None or call.name in names or call.name in _KEYWORDS or call.name.startswith("__"):
            continue
        if _is_own(project, view, unit, call.name) or not project.is_judged(view, unit, call.line):
            continue
        findings.add(
            "link-presence",
            (unit, call.line, call.column),
            [view.id],
            f"{call.name!r} is called here, but nothing that this file includes declares it",
        )


def _has_gaps(project: Project, view: LaneView, unit: str) -> bool:
    return any(
        life != Life.LIVE or project.facts(view, path).errors or project.facts(view, path).problem is not None
        for path, life in view.reach(unit).items()
    )


def _not_in_namespace(
    project: Project, view: LaneView, unit: str, scope: str, name: str, place: tuple[int, int], findings: Findings
) -> None:
    """`ns::name` where the project owns the namespace and no file that opens it so much as mentions the name."""
    reach = view.reach(unit)
    opening = [path for path in reach if scope in project.facts(view, path).namespaces]
    strange = [target for target in view.externals(reach) if not is_standard(target) and not vendors.of_header(target)]
    if (
        not opening
        or strange
        or scope.partition("::")[0] in _FOREIGN
        or unit in opening
        or name in project.facts(view, unit).names
    ):
        return
    for path in opening:
        facts = project.facts(view, path)
        if name in facts.tokens or facts.using or "using" in facts.tokens:
            return
        if any(name in define.body or "##" in define.body for define, _ in view.slice(path).defines):
            return
    if (
        any(reach[path] != Life.LIVE for path in reach)
        or _is_own(project, view, unit, scope)
        or not project.is_judged(view, unit, place[0])
    ):
        return
    findings.add(
        "link-presence",
        (unit, *place),
        [view.id],
        f"{scope}::{name} is used here, but namespace {scope} has no {name!r}",
        [(path, 1, f"opens namespace {scope}") for path in sorted(opening)[:3]],
    )

"""Chains that leave a lane without the arm that it needs."""

from __future__ import annotations

import re

from greenlane.checks.findings import Findings
from greenlane.checks.source.directives import Chain
from greenlane.checks.source.facts import Function, Trait
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView
from greenlane.record.model import Suggestion

RULES = ("guard-missing-arm",)

_WAYS_OUT = frozenset(
    """return co_return throw goto asm __asm__ __asm abort exit _exit _Exit quick_exit terminate longjmp
    unreachable __builtin_unreachable __builtin_trap __trap __assume while for rethrow_exception raise assert""".split()
)
_LOUD = re.compile(r"[A-Z][A-Z0-9_]{2,}")


def check_file(project: Project, path: str, findings: Findings) -> None:
    """A function that returns something falls off its end where no arm of its chain is selected."""
    structure = project.sources[path].structure
    if structure.strays or not structure.chains:
        return
    _braces(project, path, findings)
    for view in project.views_of(path):
        for function in project.facts(view, path).functions:
            if _must_return(function) and not _leaves(project, view, function):
                chain = _silent_chain(project, view, path, function)
                if chain is not None and project.is_judged(view, path, function.line):
                    _report(path, view, function, chain, findings)


def _braces(project: Project, path: str, findings: Findings) -> None:
    """Braces that the arms of a lane leave open, or close too often, where another lane's balance."""
    file = project.sources[path]
    nets = {number: net for number, line in enumerate(file.code_lines, 1) if (net := line.count("{") - line.count("}"))}
    uneven = [
        chain
        for chain in file.structure.chains
        if any(sum(nets.get(line, 0) for line in range(arm.first, arm.last + 1)) for arm in chain.arms)
    ]
    if not uneven or file.problem is not None or _hides_braces(project, path):
        return
    balances = {view: _balance(project, view, path, nets) for view in project.views_of(path)}
    if 0 not in balances.values():
        return
    for view, balance in balances.items():
        if balance:
            what = "leave open" if balance > 0 else "close too often"
            findings.add(
                "guard-missing-arm",
                (path, uneven[0].first, 1),
                [view.id],
                f"the arms that this lane selects {what} {abs(balance)} brace{'s' if abs(balance) > 1 else ''}; "
                "in other lanes they balance",
                [(path, chain.first, "the arms of this chain don't balance by themselves") for chain in uneven[1:3]],
            )


def _balance(project: Project, view: LaneView, path: str, nets: dict[int, int]) -> int | None:
    """Open braces at the end of a file; None where an undecided line has any."""
    directives = project.sources[path].directive_lines
    lives = {number: view.life(path, number) for number in nets if number not in directives}
    if Life.UNSURE in lives.values():
        return None
    return sum(nets[number] for number, life in lives.items() if life == Life.LIVE)


def _hides_braces(project: Project, path: str) -> bool:
    """Whether a macro whose text doesn't balance stands in the file."""
    words = set(re.findall(r"[A-Za-z_]\w*", project.sources[path].text.code))
    return any(
        define.body.count("{") != define.body.count("}")
        for word in words & project.defines.keys()
        for _, define in project.defines[word]
    )


def _must_return(function: Function) -> bool:
    exempt = Trait.VOID | Trait.CONSTRUCTOR | Trait.OPERATOR | Trait.BODILESS
    return (
        function.has(Trait.DEFINITION)
        and bool(function.body)
        and not function.traits & exempt
        and function.name != "main"
    )


def _leaves(project: Project, view: LaneView, function: Function) -> bool:
    if function.returns.startswith(("auto", "decltype")):
        return True
    if function.tokens & _WAYS_OUT or any(_LOUD.fullmatch(token) for token in function.tokens):
        return True
    return any(token in project.macro_names(view) for token in function.tokens)


def _silent_chain(project: Project, view: LaneView, path: str, function: Function) -> Chain | None:
    """The first chain of the body with a return in some arm and no arm for this lane."""
    file = project.sources[path]
    for chain, lives in zip(file.structure.chains, view.slice(path).arms, strict=True):
        if (
            not function.body <= chain.first <= chain.last <= function.last
            or chain.has_else
            or any(life != Life.DEAD for life in lives)
        ):
            continue
        if any(re.search(r"\breturn\b", line) for line in file.code_lines[chain.first - 1 : chain.last]):
            return chain
    return None


def _report(path: str, view: LaneView, function: Function, chain: Chain, findings: Findings) -> None:
    findings.add(
        "guard-missing-arm",
        (path, chain.first, 1),
        [view.id],
        f"no arm is selected here and there is no #else, so {function.name!r} falls off its end without a value",
        [
            (path, function.line, f"{function.name!r} returns {function.returns}"),
            (path, chain.last, "the chain ends without #else"),
        ],
        Suggestion(text="add an #else that returns or refuses to compile"),
    )

"""What only an expanded lane can show: unfit compilers, broken constraints, evidence out of reach."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from greenlane.matrix.cells import declared
from greenlane.matrix.document import Node
from greenlane.matrix.expand import Expanded, Expansion, mark_of_word, no_lane
from greenlane.matrix.formula import Formula, FormulaError, evaluate, parse
from greenlane.matrix.model import Evidence, Lane, Mark, Stage
from greenlane.matrix.problems import Problems, nearest
from greenlane.matrix.rows import NIGHTLY
from greenlane.matrix.schema import Backend, MatrixFile
from greenlane.matrix.targets import compiler_is_unfit, targets

PLACEHOLDERS = ("source", "build", "prefix", "artifacts", "env", "python", "jobs", "arch", "archs", "cmake_defines")
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")  # `${name}` is the shell's
_RUNNING = (Stage.TEST, Stage.REACH, Stage.EXACT, Stage.BENCH)
_NEEDS = {
    Evidence.BUILT: Stage.BUILD,
    Evidence.TESTED: Stage.TEST,
    Evidence.REACHED: Stage.REACH,
    Evidence.EXACT: Stage.EXACT,
    Evidence.BENCHED: Stage.BENCH,
}


def verify(file: MatrixFile, root: Node, name: str, expansion: Expansion, problems: Problems) -> None:
    """Adds what is wrong with the expanded lanes to the problems."""
    constraints = _constraints(file, root, name, problems)
    _backends(file, root, name, problems)
    for expanded in expansion.expanded:
        _archs(file, expanded, name, problems)
        _worlds(expanded, constraints, name, problems)
        _require(expanded, name, problems)
        _placeholders(expanded, name, problems)
    ids = [expanded.lane.id for expanded in expansion.expanded]
    _required(file, root, name, ids, problems)
    _known_red(root, name, [expanded.lane for expanded in expansion.expanded], file, problems)
    if not ids:
        node = root.value["lanes"]
        problems.add(Mark(name, node.line, node.column), "the matrix has no lane", absence=True)


def required_ids(file: MatrixFile, lanes: list[Lane]) -> tuple[str, ...]:
    """The lanes that the required gate needs."""
    if file.required is None:
        return tuple(lane.id for lane in lanes if lane.hosted_only is None and NIGHTLY not in lane.tags)
    globs = file.required
    return tuple(lane.id for lane in lanes if any(fnmatchcase(lane.id, glob) for glob in globs))


def _mark(expanded: Expanded, name: str, *paths: str) -> Mark:
    """Where the first of the paths that was written stands; else the entry that made the lane."""
    for path in paths:
        if path in expanded.draft.origins:
            node, _ = expanded.draft.origins[path]
            return Mark(name, node.line, node.column)
    return Mark(name, expanded.cell.node.line, expanded.cell.node.column)


def _constraints(file: MatrixFile, root: Node, name: str, problems: Problems) -> list[tuple[str, Formula, Mark]]:
    found = []
    for text in file.constraints:
        mark = mark_of_word(name, root.value["constraints"], text)
        try:
            found.append((text, parse(text), mark))
        except FormulaError as error:
            problems.add(mark, f"this constraint can't be read: {error} (at its character {error.column})")
    return found


def _backends(file: MatrixFile, root: Node, name: str, problems: Problems) -> None:
    for key, backend in file.backends.items():
        node = root.value["backends"].value[key]
        if backend is None:
            continue
        if backend.toolkit is not None and backend.toolkit not in backend.toolkits:
            hint = nearest(backend.toolkit, backend.toolkits)
            at = node.value["toolkit"]
            problems.add(
                Mark(name, at.line, at.column), f"the default toolkit {backend.toolkit!r} is not declared{hint}"
            )
        elif backend.toolkit is None and len(backend.toolkits) > 1:
            at = node.value["toolkits"]
            problems.add(Mark(name, at.line, at.column), "several toolkits: name the default one by `toolkit`")
        for arch, entry in backend.archs.items():
            if (entry is None or (entry.family is None and not entry.targets)) and arch not in targets():
                line, column = node.value["archs"].keys[arch]
                text = f"no compiler knows the arch {arch!r}{nearest(arch, targets())}"
                problems.add(Mark(name, line, column), f"{text}; `family` declares a new one, `targets` names a set")


def _archs(file: MatrixFile, expanded: Expanded, name: str, problems: Problems) -> None:
    lane, known = expanded.lane, targets()
    backend = file.backends[expanded.cell.backend] or Backend()
    _, entry, _ = declared(backend, expanded.cell)
    for target in lane.archs:
        if target not in known:
            if entry is None or (entry.family is None and target != lane.arch):
                problems.add(
                    _axis_mark(expanded, name), f"no compiler knows the target {target!r}{nearest(target, known)}"
                )
        elif why := compiler_is_unfit(known[target], lane.compiler, lane.compiler_version):
            problems.add(_axis_mark(expanded, name), why, lane=lane.id)
    if len({known[target].wavefront for target in lane.archs if target in known}) > 1 and not (
        entry and entry.wavefront
    ):
        problems.add(_axis_mark(expanded, name), "its targets differ in wavefront; make it two lanes", lane=lane.id)


def _axis_mark(expanded: Expanded, name: str) -> Mark:
    axis = expanded.cell.node.value.get("arch")
    return mark_of_word(name, axis, expanded.cell.arch or "") if axis else _mark(expanded, name)


def _worlds(expanded: Expanded, constraints: list[tuple[str, Formula, Mark]], name: str, problems: Problems) -> None:
    macros = expanded.lane.macros
    for text, formula, mark in constraints:
        if not evaluate(formula, macros):
            written = ", ".join(macros) or "no macro"
            where = _mark(expanded, name, "macros")
            message = f"{written} on violates the constraint {text!r} of line {mark.line}"
            problems.add(where, message, lane=expanded.lane.id)


def stages_of(lane: Lane) -> frozenset[str]:
    """The stages that the lane has; `check` is in all of them."""
    return frozenset({Stage.CHECK, *lane.stages, *lane.gates, *((Stage.IMAGE,) if lane.image else ())})


def _require(expanded: Expanded, name: str, problems: Problems) -> None:
    lane = expanded.lane
    have = stages_of(lane)
    for evidence in lane.require:
        if why := _out_of_reach(lane, Evidence(evidence), have):
            node = expanded.draft.origins["require"][0]
            problems.add(mark_of_word(name, node, evidence), f"{evidence!r} is out of reach: {why}", lane=lane.id)


def _out_of_reach(lane: Lane, evidence: Evidence, have: frozenset[str]) -> str | None:
    if evidence in _NEEDS:
        stage = _NEEDS[evidence]
        if stage not in have:
            return f"it has no {stage} stage"
        if evidence is Evidence.BENCHED and Stage.EXACT not in have:
            return "bench counts only after exact, and it has no exact stage"
        if evidence is Evidence.BENCHED and lane.emulate:
            return "an emulated lane is never benched"
        return None
    if evidence is Evidence.CHECKED:
        return None
    if not have.intersection(_RUNNING):
        return "it has no stage that runs what was built"
    if evidence is Evidence.EMULATED and not lane.emulate:
        return "`emulate` is not on"
    if evidence in (Evidence.RAN_ON_TARGET, Evidence.RAN_ON_FAMILY) and lane.emulate:
        return "it is emulated, which proves `emulated` and no more"
    return None


def _placeholders(expanded: Expanded, name: str, problems: Problems) -> None:
    lane = expanded.lane
    texts = [(f"stages.{stage}", command) for stage, commands in lane.stages.items() for command in commands]
    texts += [(f"env.{key}", value) for key, value in lane.env.items()]
    texts += [("model", glob) for glob in lane.model]
    for path, text in texts:
        for word in _PLACEHOLDER.findall(text):
            if word in PLACEHOLDERS and not (word == "arch" and lane.arch is None):
                continue
            node = expanded.draft.origins.get(path, (expanded.cell.node, ""))[0]
            if word == "arch":
                message = "there is no architecture for {arch}"
            else:
                message = f"unknown placeholder {{{word}}}{nearest(word, PLACEHOLDERS)}"
            problems.add(mark_of_word(name, node, text), message, lane=lane.id if word == "arch" else None)


def _required(file: MatrixFile, root: Node, name: str, ids: list[str], problems: Problems) -> None:
    for glob in file.required or ():
        if not any(fnmatchcase(lane, glob) for lane in ids):
            problems.add(mark_of_word(name, root.value["required"], glob), no_lane(glob, ids), absence=True)


def _known_red(root: Node, name: str, lanes: list[Lane], file: MatrixFile, problems: Problems) -> None:
    for index, entry in enumerate(file.known_red):
        node = root.value["known_red"].value[index]
        matched = [lane for lane in lanes if fnmatchcase(lane.id, entry.lane)]
        if not matched:
            problems.add(
                mark_of_word(name, node.value["lane"], entry.lane),
                no_lane(entry.lane, [lane.id for lane in lanes]),
                absence=True,
            )
        elif not any(entry.stage in stages_of(lane) for lane in matched):
            at = node.value["stage"]
            problems.add(
                Mark(name, at.line, at.column), f"no lane that {entry.lane!r} matches has the stage {entry.stage}"
            )

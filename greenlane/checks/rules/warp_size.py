"""Literals that fix how many lanes a wavefront has, in lanes whose wavefront is another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from greenlane.checks.findings import Findings
from greenlane.checks.source import vendors
from greenlane.checks.source.facts import Function, Trait
from greenlane.checks.source.project import Project
from greenlane.checks.source.slices import Life
from greenlane.checks.source.view import LaneView

RULES = ("warp-size",)

_WARP_NAME = re.compile(
    r"(?:k|g_|s_)?_?(?:[A-Za-z0-9]+_)?(?:warp|wave|wavefront)_?(?:size|width|sz|lanes|threads)?_?", re.I
)
_CONSTANT = re.compile(r"\b(?:constexpr|const|static)\b[^;={}()]*?\b(\w+)\s*(?:=\s*|\{\s*)(\d+)\s*\}?\s*;")
_FROM_BUILT_IN = re.compile(r"\bconstexpr\b[^;={}()]*=[^;]*\bwarpSize\b")
_SHUFFLE = re.compile(r"\b(__shfl(?:_up|_down|_xor)?(?:_sync)?)\s*\(")
_MASKED = re.compile(
    r"\b(__(?:shfl(?:_up|_down|_xor)?|ballot|any|all|match_any|match_all|reduce_\w+)_sync)\s*\(\s*([^,()]+?)\s*[,)]"
)
_TREE = re.compile(
    r"\bfor\s*\([^;]*?\b(\w+)\s*=\s*(\d+)\s*;[^;]*;\s*\1\s*(?:/=\s*2|>>=\s*1|=\s*\1\s*(?:/\s*2|>>\s*1))\s*\)"
)
_BALLOT = re.compile(
    r"\b(?:unsigned|unsigned\s+int|uint32_t|int|int32_t)\s+(\w+)\s*=\s*__ballot(?:_sync)?\s*\(|\b__(?:popc|ffs|clz)\s*\(\s*__ballot(?:_sync)?\s*\("
)
_SCRATCH = re.compile(r"__shared__\s+[\w:<>\s]+?\b(\w+)\s*\[\s*(32|64)\s*\]")
_TILE = re.compile(r"\btiled_partition\s*<\s*(\d+)\s*>")
_MASK_32 = re.compile(r"(?:\(\s*unsigned(?:\s+int)?\s*\)\s*)?\(?\s*0x(?:ffffffff)[uU]?\s*\)?", re.I)
_HINTS = (b"warp", b"Warp", b"WARP", b"wave", b"Wave", b"WAVE", b"__shfl", b"__ballot", b"_sync", b"tiled_partition")
_REACH_OF_TREE = 4  # lines after a loop's head in which its shuffle stands


class _Body(NamedTuple):
    function: Function
    lines: list[tuple[int, str]]  # judged ones

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.lines)


def check_file(project: Project, path: str, findings: Findings) -> None:
    for view in project.views_of(path):
        width = view.lane.wavefront or vendors.wavefront(view.lane.arch)
        if width is None or not view.allowed or project.lane_files[view.id][path] != Life.LIVE:
            continue
        if _is_for_devices(project, view, path):
            _File(project, view, path, width, findings).check()


def _is_for_devices(project: Project, view: LaneView, path: str) -> bool:
    if not any(hint in project.sources[path].data for hint in _HINTS):
        return False
    if path.endswith((".cu", ".cuh", ".hip", ".mu")):
        return True
    return any(function.traits & (Trait.DEVICE | Trait.KERNEL) for function in project.facts(view, path).functions)


class _File:
    def __init__(self, project: Project, view: LaneView, path: str, width: int, findings: Findings) -> None:
        self.project = project
        self.view = view
        self.path = path
        self.width = width
        self.findings = findings
        self.macros = project.macro_names(view)

    def check(self) -> None:
        self._constants()
        self._masks()
        for function in self.project.facts(self.view, self.path).functions:
            if function.has(Trait.DEFINITION) and function.body:
                self._body(_Body(function, list(self._judged(function.body, function.last))))

    def _judged(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        lines = self.project.sources[self.path].code_lines
        for number in range(first, min(last, len(lines)) + 1):
            if self.project.is_judged(self.view, self.path, number):
                yield number, lines[number - 1]

    def _add(self, line: int, column: int, message: str) -> None:
        self.findings.add("warp-size", (self.path, line, column + 1), [self.view.id], message)

    # Constants.

    def _constants(self) -> None:
        for number, text in self._judged(1, 10**9):
            match = _CONSTANT.search(text)
            if match and _WARP_NAME.fullmatch(match.group(1)):
                self._constant(number, match.start(1), match.group(1), int(match.group(2)))
            built_in = _FROM_BUILT_IN.search(text)
            if built_in and vendors.HIP in self.view.allowed:
                self._add(
                    number,
                    built_in.start(),
                    "warpSize is no constant expression in ROCm 7; decide by the target's macros, or read it in the "
                    "kernel",
                )
        for define, life in self.view.slice(self.path).defines:
            if (
                life == Life.LIVE
                and define.params is None
                and define.body.isdigit()
                and _WARP_NAME.fullmatch(define.name)
            ):
                self._constant(define.line, 0, define.name, int(define.body))

    def _constant(self, line: int, column: int, name: str, value: int) -> None:
        if value in {32, 64} and value > self.width:
            self._add(
                line,
                column,
                f"{name} is {value}, but a wavefront of this lane has {self.width} lanes: the others don't exist",
            )

    # Masks: ROCm takes 64 bits, whatever the wavefront.

    def _masks(self) -> None:
        if vendors.HIP not in self.view.allowed:
            return
        for number, text in self._judged(1, 10**9):
            for match in _MASKED.finditer(text):
                if match.group(1) in self.macros or match.group(1) in self.project.functions(self.view):
                    continue
                self._mask(number, match.start(2), match.group(2))

    def _mask(self, line: int, column: int, written: str) -> None:
        if _MASK_32.fullmatch(written):
            self._add(line, column, f"the mask {written} has 32 bits; HIP's _sync functions take a 64-bit mask")
            return
        known = [entry for entry in self.macros.of(written) if entry[2] == Life.LIVE]
        if len(known) == 1 and known[0][1].params is None and _MASK_32.fullmatch(known[0][1].body):
            path, define, _ = known[0]
            self.findings.add(
                "warp-size",
                (path, define.line, 1),
                [self.view.id],
                f"the mask {written} has 32 bits; HIP's _sync functions take a 64-bit mask",
                [(self.path, line, "used as a mask here")],
            )

    # Bodies.

    def _body(self, body: _Body) -> None:
        text = body.text
        constants = {name: value for name in body.function.tokens if (value := self._value(name)) is not None}
        knows_width = "warpSize" in body.function.tokens or self.width in constants.values()
        self._trees(body)
        self._ballots(body)
        self._tiles(body)
        if knows_width:
            self._widths(body)
            if any(re.search(rf"/\s*{name}\b", text) for name in [*constants, "warpSize"]):
                self._scratch(body)

    def _value(self, name: str) -> int | None:
        """The value of a warp constant that is a macro with one literal definition in this lane."""
        if not _WARP_NAME.fullmatch(name):
            return None
        live = [define for _, define, life in self.macros.of(name) if life == Life.LIVE and define.params is None]
        return int(live[0].body) if len(live) == 1 and live[0].body.isdigit() else None

    def _trees(self, body: _Body) -> None:
        """A butterfly over half of a literal width, whose shuffles don't say the width."""
        for index, (number, text) in enumerate(body.lines):
            match = _TREE.search(text)
            if match is None or int(match.group(2)) not in {16, 32} or int(match.group(2)) * 2 == self.width:
                continue
            near = "\n".join(line for _, line in body.lines[index : index + _REACH_OF_TREE])
            calls = list(_shuffles(near))
            if calls and all(match.group(1) in " ".join(args) and not _has_width(name, args) for name, args in calls):
                if any(name in self.macros or name in self.project.functions(self.view) for name, _ in calls):
                    continue
                self._add(
                    number,
                    match.start(),
                    f"the tree starts at {match.group(2)}, which fits {2 * int(match.group(2))} lanes; "
                    f"this lane's wavefront has {self.width}",
                )

    def _widths(self, body: _Body) -> None:
        for number, text in body.lines:
            for name, args in _shuffles(text):
                if _has_width(name, args) and args[-1] in {"32", "64"} and int(args[-1]) != self.width:
                    self._add(
                        number,
                        text.find(name),
                        f"the shuffle's width is {args[-1]} beside a constant of {self.width} lanes",
                    )

    def _scratch(self, body: _Body) -> None:
        for number, text in body.lines:
            match = _SCRATCH.search(text)
            if match and int(match.group(2)) != self.width and re.search(rf"\b{match.group(1)}\s*\[[^\]]*/", body.text):
                self._add(
                    number,
                    match.start(2),
                    f"{match.group(1)} has {match.group(2)} entries beside a constant of {self.width} lanes",
                )

    def _ballots(self, body: _Body) -> None:
        if self.width != vendors.WARP_64:
            return
        for number, text in body.lines:
            match = _BALLOT.search(text)
            if match and "__ballot" not in self.macros and "__ballot_sync" not in self.macros:
                self._add(
                    number, match.start(), "a ballot of 64 lanes is cut to 32 bits; keep it in unsigned long long"
                )

    def _tiles(self, body: _Body) -> None:
        for number, text in body.lines:
            match = _TILE.search(text)
            if match and int(match.group(1)) > self.width:
                self._add(
                    number, match.start(), f"a tile of {match.group(1)} lanes does not fit a wavefront of {self.width}"
                )


def _shuffles(text: str) -> Iterator[tuple[str, list[str]]]:
    for match in _SHUFFLE.finditer(text):
        depth, at, args = 1, match.end(), [""]
        while at < len(text) and depth:
            char = text[at]
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 1:
                args.append("")
            elif depth:
                args[-1] += char
            at += 1
        if not depth:
            yield match.group(1), [arg.strip() for arg in args]


def _has_width(name: str, args: list[str]) -> bool:
    return len(args) == (4 if name.endswith("_sync") else 3)

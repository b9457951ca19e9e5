"""The second layer: `clang -fsyntax-only` on the units that findings speak of confirms them, or takes them back.

A finding is withdrawn only where clang read the whole unit in each of its lanes and had nothing to say at that line.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from greenlane.checks.check import project_of
from greenlane.checks.report import Report
from greenlane.errors import EnvironmentMissing
from greenlane.matrix.model import Lane, Matrix
from greenlane.record.model import Finding

_NAMES = ("clang++", *(f"clang++-{version}" for version in range(23, 13, -1)))
_TIME_LIMIT_S = 120
_DEVICE = (".cu", ".hip")
_DIAGNOSTIC = re.compile(r"(.+?):(\d+):(\d+): (fatal error|error|warning): (.*?)(?: \[(-W[\w+-]+(?:,[^\]]*)?)\])?$")
_WARNINGS = {
    "unused-function": ("-Wunused-function", "-Wunneeded-internal-declaration", "-Wunused-const-variable"),
    "unused-variable": ("-Wunused-variable", "-Wunused-but-set-variable"),
    "unused-parameter": ("-Wunused-parameter",),
}
_ERRORS = frozenset({"call-arity", "missing-include", "launch-arity", "declaration-mismatch", "alias-gap"})
# What a compiler may say too, and whose silence proves nothing: the linker, or another file, has the word.
_SAYABLE = frozenset({"link-presence", "foreign-include", "guard-missing-arm"})
_KEPT_FLAGS = ("-I", "-isystem", "-D", "-U", "-std=", "-include", "-iquote", "-F")
_KEPT_WORDS = ("--offload-arch=", "--rocm-path=", "--hip-path=", "--cuda-path=", "-fgpu-rdc", "-fno-gpu-rdc")


@dataclass(frozen=True)
class Verdict:
    """What clang said of one unit in one lane."""

    diagnostics: tuple[tuple[str, int, str, str], ...]  # file, line, kind, flag
    complete: bool  # nothing stopped it on the way
    clean: bool  # no error, so that no warning was held back

    def speaks(self, finding: Finding) -> bool:
        flags = _WARNINGS.get(finding.rule)
        return any(
            file == finding.file and line == finding.line and ((flag in flags) if flags else kind.endswith("error"))
            for file, line, kind, flag in self.diagnostics
        )

    def denies(self, finding: Finding) -> bool:
        return (
            finding.rule not in _SAYABLE
            and (self.clean if finding.rule in _WARNINGS else self.complete)
            and not self.speaks(finding)
        )


def confirm(report: Report, matrix: Matrix, root: Path) -> Report:
    compiler = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if compiler is None:
        raise EnvironmentMissing(
            "--confirm needs clang, and none is on PATH; install clang 14 or later, or leave --confirm out"
        )
    judged = {*_WARNINGS, *_ERRORS, *_SAYABLE}
    doubtful = [finding for finding in report.findings if finding.rule in judged]
    units = _units(doubtful, matrix, root)
    verdicts = _ask(
        compiler,
        root,
        matrix,
        {(lane, unit) for finding in doubtful for lane in finding.lanes if (unit := units.get((finding.file, lane)))},
    )
    kept: list[Finding] = []
    for finding in report.findings:
        rest = _judged(finding, units, verdicts) if finding.rule in judged else finding
        if rest is not None:
            kept.append(rest)
    return replace(report, findings=tuple(kept), withdrawn=len(report.findings) - len(kept), asked=True)


def _judged(
    finding: Finding, units: Mapping[tuple[str, str], str], verdicts: Mapping[tuple[str, str], Verdict]
) -> Finding | None:
    """Confirmed where clang says so in some lane; without the lanes in which it says the contrary."""
    asked = {lane: verdicts.get((lane, units.get((finding.file, lane), ""))) for lane in finding.lanes}
    rest = tuple(lane for lane, verdict in asked.items() if verdict is None or not verdict.denies(finding))
    if not rest:
        return None
    spoken = any(verdict is not None and verdict.speaks(finding) for verdict in asked.values())
    return finding.model_copy(update={"lanes": rest, "layer": "compiler" if spoken else "source"})


def _units(findings: Iterable[Finding], matrix: Matrix, root: Path) -> dict[tuple[str, str], str]:
    """(file, lane) -> a unit that reads the file there."""
    project = project_of(matrix, root)
    found = {}
    for finding in findings:
        for lane in finding.lanes:
            view = project.view(lane)
            units = [finding.file] if finding.file in view.units else list(project.units_reaching(view, finding.file))
            if units:
                found[(finding.file, lane)] = units[0]
    return found


def _ask(compiler: str, root: Path, matrix: Matrix, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Verdict]:
    lanes = {lane.id: lane for lane in matrix.lanes}
    recorded = {lane: _compile_commands(root, lane) for lane, _ in wanted}

    def one(key: tuple[str, str]) -> tuple[tuple[str, str], Verdict]:
        lane, unit = key
        flags = recorded[lane].get(unit)
        verdict = _compile(command(compiler, root, lanes[lane], unit, flags), root)
        if not verdict.complete and unit.endswith(_DEVICE):  # perhaps no toolkit: what needs none can still be read
            bare = _compile(command(compiler, root, lanes[lane], unit, flags, toolkit=False), root)
            verdict = bare if bare.complete else verdict
        return key, verdict

    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(pool.map(one, sorted(wanted)))


def command(
    compiler: str, root: Path, lane: Lane, unit: str, recorded: list[str] | None, toolkit: bool = True
) -> list[str]:
    """The unit's own flags where a build recorded them, and the lane's macros."""
    flags = recorded or [f"-I{folder}" for folder in lane.include_dirs or (".", "include", "src")]
    if not any(flag.startswith("-std=") for flag in flags) and not unit.endswith(".c"):
        flags = [*flags, "-std=c++20"]
    macros = [f"-D{name}={text}" for name, text in lane.macros.items() if not name.startswith("_")]
    return [
        compiler,
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-ferror-limit=0",
        "-fno-color-diagnostics",
        *_language(unit, lane, flags, toolkit),
        *flags,
        *macros,
        unit,
    ]


def _language(unit: str, lane: Lane, flags: list[str], toolkit: bool) -> list[str]:
    """Device code as its vendor's: both passes with the toolkit's headers, the host's pass alone without them."""
    if not unit.endswith(_DEVICE):
        return []
    archs = (
        []
        if any(flag.startswith("--offload-arch=") for flag in flags)
        else list(lane.archs or filter(None, [lane.arch]))
    )
    if "hip" in lane.vendors:
        targets = [f"--offload-arch={arch}" for arch in archs if arch.startswith("gfx")]
        words = ["-x", "hip", "-nogpulib"]
        return [*words, *targets] if toolkit else [*words, "--cuda-host-only", "-nogpuinc"]
    return ["-x", "cuda", "-nocudalib", "--cuda-host-only", *([] if toolkit else ["-nocudainc"])]


def _compile_commands(root: Path, lane: str) -> dict[str, list[str]]:
    """Unit -> the flags of it that matter here: as the lane's own build recorded them, or any build of the tree."""
    kept = root / ".greenlane" / "lanes" / lane
    found: dict[str, list[str]] = {}
    for file in (
        kept / "artifacts" / "compile_commands.json",
        kept / "build" / "compile_commands.json",
        root / "compile_commands.json",
        *sorted(root.glob("build*/compile_commands.json")),
    ):
        try:
            entries: Any = json.loads(file.read_text())
            for entry in entries:
                words = entry.get("arguments") or shlex.split(entry["command"])
                source = Path(entry["directory"]) / entry["file"]
                unit, prefix = _in_tree(root, source)
                if unit is not None:
                    flags = _flags(words, Path(entry["directory"]))
                    found.setdefault(unit, [_moved(flag, prefix, root) for flag in flags])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def _in_tree(root: Path, source: Path) -> tuple[str | None, str]:
    """The unit that a recorded path means, and where its tree lay: a lane in a container has it elsewhere."""
    parts = Path(os.path.normpath(source)).parts
    for skipped in range(len(parts) - 1):
        unit = Path(*parts[skipped:]) if skipped else Path(*parts).relative_to("/")
        if skipped and len(unit.parts) > 1 and (root / unit).is_file():
            return str(unit), str(Path(*parts[:skipped]))
    return None, ""


def _moved(flag: str, prefix: str, root: Path) -> str:
    return flag.replace(prefix, str(root.resolve()), 1) if prefix not in {"", "/"} else flag


def _flags(words: list[str], directory: Path) -> list[str]:
    """Include paths, macros, the language version and GPU targets; nothing that could write, load or run."""
    kept: list[str] = []
    index = 1
    while index < len(words):
        word = words[index]
        prefix = next((flag for flag in _KEPT_FLAGS if word.startswith(flag)), None)
        if prefix is not None:
            value = word[len(prefix) :]
            if not value and index + 1 < len(words):
                index += 1
                value = words[index]
            if prefix in {"-I", "-isystem", "-iquote", "-F", "-include"}:
                value = str(directory / value)
            kept += [prefix + value] if prefix not in {"-isystem", "-iquote", "-include"} else [prefix, value]
        elif word.startswith(_KEPT_WORDS):
            kept.append(word)
        index += 1
    return kept


def _compile(words: list[str], root: Path) -> Verdict:
    try:
        ran = subprocess.run(
            words, cwd=root, capture_output=True, text=True, errors="replace", timeout=_TIME_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return Verdict((), complete=False, clean=False)
    found = []
    for line in ran.stderr.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match:
            found.append(
                (
                    match.group(1).removeprefix("./"),
                    int(match.group(2)),
                    match.group(4),
                    (match.group(6) or "").split(",")[0],
                )
            )
    fatal = any(kind == "fatal error" for _, _, kind, _ in found) or (ran.returncode != 0 and not found)
    errors = any(kind == "error" for _, _, kind, _ in found)
    return Verdict(tuple(found), complete=not fatal, clean=not fatal and not errors)

"""`greenlane doctor`: what this machine can run of the matrix, and what to install for the rest."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from greenlane.errors import GreenlaneError
from greenlane.matrix.globs import compiled
from greenlane.matrix.model import Lane, Matrix, Stage

# How each package manager calls what a lane may lack, in the order in which managers are looked for.
PACKAGES = {
    "apt-get": {
        "a container daemon": "docker.io",
        "cmake": "cmake",
        "ninja": "ninja-build",
        "make": "make",
        "g++": "g++",
        "clang++": "clang",
        "hipcc": "hipcc libamdhip64-dev",
        "git": "git",
    },
    "dnf": {
        "a container daemon": "moby-engine",
        "cmake": "cmake",
        "ninja": "ninja-build",
        "make": "make",
        "g++": "gcc-c++",
        "clang++": "clang",
        "hipcc": "hipcc",
        "git": "git",
    },
    "brew": {
        "a container daemon": "colima docker",
        "cmake": "cmake",
        "ninja": "ninja",
        "g++": "gcc",
        "clang++": "llvm",
    },
}
COMPILERS = {"gcc": "g++", "clang": "clang++", "nvcc": "nvcc", "hipcc": "hipcc", "msvc": "cl"}
TOOLS = ("cmake", "ninja", "make", "ctest", "meson", "bazel")
GENERATORS = {"-G Ninja": "ninja"}


@dataclass(frozen=True, slots=True)
class Machine:
    """What was found here."""

    system: str
    daemon: str | None  # where a container daemon answers
    cards: frozenset[str]  # vendors
    tools: frozenset[str]
    root: Path  # the matrix's folder


@dataclass(frozen=True, slots=True)
class Prospect:
    """How far one lane gets here."""

    lane: Lane
    build: str  # "docker", "host", "no"
    run: str  # "docker", "host", "emulated", "no", "-"
    lacking: tuple[str, ...]


def command(arguments: argparse.Namespace) -> int:
    from greenlane.matrix import load

    matrix = load(arguments.matrix)
    machine = look(matrix, arguments.matrix.resolve().parent)
    print("\n".join(report(machine, [prospect(lane, machine) for lane in matrix.lanes])))
    idle = list(idle_globs(matrix, tree_files(machine.root)))
    if idle:
        print("\nGlobs that match no file:", *idle, sep="\n  ")
    return 0


def look(matrix: Matrix, root: Path) -> Machine:
    """Looks at this machine: daemon, cards, and the tools that the matrix may need."""
    from greenlane.executors import daemon

    found = daemon.find()
    wanted = {*TOOLS, "git", *COMPILERS.values()}
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        daemon=found.base_url if found else None,
        cards=frozenset(_cards()),
        tools=frozenset(tool for tool in wanted if shutil.which(tool)),
        root=root,
    )


def tree_files(root: Path) -> list[str]:
    """What git knows of the folder, or everything in it where git knows nothing."""
    from greenlane.matrix import git

    try:
        return list(git.Tree.at(root).files)
    except GreenlaneError:
        return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]


def idle_globs(matrix: Matrix, files: list[str]) -> Iterator[str]:
    """Globs that say something about files that aren't there: most likely misspelt."""
    said: dict[str, None] = {}
    for lane in matrix.lanes:
        for name in ("sources", "paths", "setup_inputs"):
            for glob in getattr(lane, name):
                if not any(compiled(glob).fullmatch(path) for path in files):
                    mark = lane.marks.get(name)
                    said[f"{glob} ({name}{f', {mark}' if mark else ''})"] = None
    for glob in matrix.irrelevant:
        if not any(compiled(glob).fullmatch(path) for path in files):
            said[f"{glob} (irrelevant)"] = None
    yield from said


def _cards() -> Iterator[str]:
    if Path("/dev/kfd").exists():
        yield "amd"
    if Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi"):
        yield "nvidia"


def prospect(lane: Lane, machine: Machine) -> Prospect:
    """How far the lane gets on the machine, and what it lacks to get further."""
    if lane.hosted_only and lane.executor != "docker":
        return Prospect(lane, "no", "no", (f"a hosted runner: {lane.hosted_only}",))
    where, lacking = _place(lane, machine)
    if where == "no":
        return Prospect(lane, "no", "no", lacking)
    run, missing = _run(lane, machine, where)
    return Prospect(lane, where, run, missing)


def _place(lane: Lane, machine: Machine) -> tuple[str, tuple[str, ...]]:
    if lane.image is not None and lane.executor != "host" and (machine.daemon or lane.executor == "docker"):
        if not (machine.root / lane.image.dockerfile).is_file():
            return "no", (f"the file {lane.image.dockerfile}",)
        return ("docker", ()) if machine.daemon else ("no", ("a container daemon",))
    lacking = tuple(tool for tool in _needed(lane) if tool not in machine.tools)
    return ("no" if lacking else "host"), lacking


def _needed(lane: Lane) -> list[str]:
    """Tools that the host needs for the lane; what its set-up installs by pip is not among them."""
    commands = [one for stage, many in lane.stages.items() if stage != Stage.IMAGE for one in many]
    words = {word for one in commands for word in one.split()}
    needed = [tool for tool in TOOLS if tool in words]
    needed += [tool for flag, tool in GENERATORS.items() if any(flag in one for one in commands)]
    needed += [COMPILERS[lane.compiler]] if lane.compiler in COMPILERS else []
    set_up = " ".join(lane.stages.get(Stage.IMAGE, ())).split()
    installed = {*set_up, *(["ctest"] if "cmake" in set_up else [])}
    return [tool for tool in dict.fromkeys(needed) if tool not in installed]


def _run(lane: Lane, machine: Machine, where: str) -> tuple[str, tuple[str, ...]]:
    runs = {Stage.TEST, Stage.REACH, Stage.EXACT, Stage.BENCH} & {*lane.stages, *lane.gates}
    if not runs:
        return "-", ()
    if lane.emulate:
        return "emulated", ()
    if lane.device is None or lane.device in machine.cards:
        return where, ()
    return "no", (f"a card of {lane.device}",)


def report(machine: Machine, prospects: list[Prospect]) -> Iterator[str]:
    """The machine, a table of the lanes, and what to install."""
    daemon = f"a container daemon answers at {machine.daemon}" if machine.daemon else "no container daemon answers"
    cards = f"cards of {', '.join(sorted(machine.cards))}" if machine.cards else "no GPU"
    yield f"{machine.system}, {os.cpu_count()} cores; {daemon}; {cards}"
    yield ""
    rows = [("LANE", "CHECK", "BUILD", "RUN", "LACKS")]
    rows += [(one.lane.id, "yes", one.build, one.run, "; ".join(one.lacking) or "-") for one in prospects]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    lacking: dict[str, list[str]] = {}
    for one in prospects:
        for thing in one.lacking:
            lacking.setdefault(thing, []).append(one.lane.id)
    if lacking:
        yield ""
        yield "To run more:"
    for thing, lanes in lacking.items():
        yield f"  {thing}{_how(thing)}: {', '.join(lanes)}"


def _how(thing: str) -> str:
    """The command that installs it here, where one is known."""
    for manager, names in PACKAGES.items():
        if shutil.which(manager) and thing in names:
            return f" ({manager} install {names[thing]})"
    return ""

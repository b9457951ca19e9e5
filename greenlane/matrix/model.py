"""What an expanded matrix is: frozen values that every later layer reads. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    """The steps of a lane, in the order in which they run."""

    CHECK = "check"
    IMAGE = "image"
    CONFIGURE = "configure"
    BUILD = "build"
    TEST = "test"
    REACH = "reach"
    EXACT = "exact"
    BENCH = "bench"


class Evidence(StrEnum):
    """What a record can prove, in the order in which it is shown."""

    CHECKED = "checked"
    BUILT = "built"
    TESTED = "tested"
    EMULATED = "emulated"
    RAN_ON_FAMILY = "ran-on-family"
    RAN_ON_TARGET = "ran-on-target"
    REACHED = "reached"
    EXACT = "exact"
    BENCHED = "benched"


@dataclass(frozen=True, slots=True)
class Mark:
    """Where in the matrix a value was written; line and column count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Image:
    """The container that a lane runs in."""

    dockerfile: str  # relative to the matrix
    args: Mapping[str, str] = field(default_factory=dict)  # build arguments, toolkit version included
    target: str | None = None  # build target of a multi-stage file


@dataclass(frozen=True, slots=True)
class Limits:
    """What one lane may use at most."""

    timeout_s: float = 3600.0
    stage_timeout_s: Mapping[str, float] = field(default_factory=dict)  # by stage name
    memory_bytes: int | None = None
    pids: int | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """One expanded cell of the matrix, with every default and override applied."""

    id: str  # <backend>[-<arch>][-<variant>]
    backend: str
    toolkit: str | None = None  # version, such as "7.0"
    arch: str | None = None  # as named in the id: "gfx1100", "sm_90", "fat"
    archs: tuple[str, ...] = ()  # compile targets: ("gfx1100",), ("sm_80", "sm_90a", "sm_100a")
    variant: str | None = None
    tags: tuple[str, ...] = ()
    row: str | None = None
    require: tuple[str, ...] = ()  # values of Evidence
    digest: str = ""  # changes exactly when something that affects the lane changes

    compiler: str | None = None  # "gcc", "clang", "nvcc", "hipcc", "msvc"
    compiler_version: str | None = None
    wavefront: int | None = None  # lanes per wavefront of the arch
    family: str | None = None  # siblings of the arch run the same kind of code: "gfx11"
    device: str | None = None  # vendor whose card a run needs: "amd", "nvidia"
    vendors: tuple[str, ...] = ()  # whose headers and APIs the lane may use: "cuda", "hip"
    macros: Mapping[str, str] = field(default_factory=dict)  # preprocessor macros that are on
    sources: tuple[str, ...] = ()  # globs of the files that the lane compiles; empty: every source file
    include_dirs: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)  # CMake defines

    executor: str = "auto"  # "auto", "host", "docker"
    emulate: bool = False  # run GPU stages under `greenlane emulate`
    hosted_only: str | None = None  # why the lane can be built on a hosted runner only
    image: Image | None = None
    limits: Limits = Limits()
    env: Mapping[str, str] = field(default_factory=dict)
    passthrough: tuple[str, ...] = ()  # host environment variables that may enter
    runs_on: tuple[str, ...] = ()  # CI runner labels
    paths: tuple[str, ...] = ()  # globs of files that affect the lane, for --changed-since

    # stage name -> shell commands. `image` holds the set-up of the host executor (network allowed, cached by
    # content of `setup_inputs`). Placeholders: {source} {build} {prefix} {artifacts} {env} {python} {jobs}
    # {arch} {archs} {cmake_defines}. A stage without commands and without a gate does not exist in the lane.
    stages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    setup_inputs: tuple[str, ...] = ()
    model: tuple[str, ...] = ()  # globs of the files, inside the lane, that its gates measure with
    gates: Mapping[str, Any] = field(default_factory=dict)  # validated: greenlane.matrix.gates
    marks: Mapping[str, Mark] = field(default_factory=dict)  # dotted field path -> where it was written


@dataclass(frozen=True, slots=True)
class KnownRed:
    """A red that somebody owns until a date; an expired entry and an unexpected pass are both red."""

    lane: str  # glob on lane ids
    stage: str
    fingerprint: str
    owner: str
    since: str  # ISO date
    expires: str  # ISO date
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """A whole matrix after expansion."""

    file: str  # as given by the caller
    lanes: tuple[Lane, ...]
    constraints: tuple[str, ...] = ()  # boolean formulas over macros that hold in every world
    checks: Mapping[str, Any] = field(default_factory=dict)  # validated: greenlane.matrix.checks
    known_red: tuple[KnownRed, ...] = ()
    required: tuple[str, ...] = ()  # ids of the lanes that the required gate needs
    irrelevant: tuple[str, ...] = ()  # globs of files that affect no lane
    templates: str | None = None  # folder of the project's own templates, relative to the matrix
    digest: str = ""

    def lane(self, lane_id: str) -> Lane | None:
        return next((lane for lane in self.lanes if lane.id == lane_id), None)

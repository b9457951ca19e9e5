"""What a matrix file may say: the models behind the loader, the JSON Schema and docs/matrix.md."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from greenlane.matrix.model import Evidence, Stage
from greenlane.matrix.values import Commands, OptionalWords, Seconds, Size, Text, Word, Words, inside, listed, matching

Name = Annotated[
    Word, AfterValidator(matching(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", "a name of letters, digits, _ . + and -"))
]
Macro = Annotated[Word, AfterValidator(matching(r"[A-Za-z_]\w*", "the name of a preprocessor macro"))]
Inside = Annotated[Word, AfterValidator(inside)]
Commanded = Literal["image", "configure", "build", "test"]  # the stages that run commands
Day = Annotated[Word, AfterValidator(lambda text: date.fromisoformat(text).isoformat())]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def key(text: str, *, example: str, default: Any = None) -> Any:
    """A key: what it means and an example in YAML, for the reference and for editors."""
    return Field(default, description=text, json_schema_extra={"x-example": example})


class Common(Part):
    """What any layer may set: defaults, a backend, a toolkit, an arch, a variant, a product, an include, an override.

    Later layers win. Mappings merge key by key (`null` removes a key), tags add up, everything else is replaced.
    """

    dockerfile: Inside | None = key(
        "Dockerfile of the image, relative to the matrix", example="dockerfile: dockerfiles/cpu.Dockerfile"
    )
    target: Word | None = key("build target of a multi-stage Dockerfile", example="target: build")
    build_args: dict[Word, Text | None] | None = key(
        "build arguments of the image", example="build_args: {GCC_VERSION: 16}"
    )
    compiler: Word | None = key(
        "the compiler: gcc, clang, nvcc, hipcc, msvc or another's name", example="compiler: clang"
    )
    compiler_version: Word | None = key(
        "its version; for nvcc and hipcc the toolkit's version unless it is given", example="compiler_version: 21.1"
    )
    device: Word | None = key("vendor whose card a run needs", example="device: amd")
    vendors: Words | None = key("vendor APIs and header directories that the lane may use", example="vendors: [hip]")
    macros: dict[Macro, Text | None] | None = key("preprocessor macros that are on", example="macros: {USE_HIP: 1}")
    defines: dict[Word, Text | None] | None = key(
        "CMake defines, {cmake_defines} in commands", example="defines: {BUILD_TESTS: ON}"
    )
    sources: Words | None = key(
        "globs of the files that the lane compiles; none: every source file", example='sources: ["src/**"]'
    )
    include_dirs: Words | None = key("include directories, in order", example="include_dirs: [include, src]")
    executor: Literal["auto", "host", "docker"] | None = key("where the lane runs", example="executor: docker")
    emulate: bool | None = key("run GPU stages under `greenlane emulate`", example="emulate: true")
    hosted_only: Word | None = key(
        "why the lane can be built on a hosted runner only; it is still checked everywhere",
        example="hosted_only: MSVC runs on Windows",
    )
    timeout: Seconds | None = key("time for the whole lane", example="timeout: 1h30m")
    stage_timeouts: dict[Stage, Seconds | None] | None = key(
        "time for single stages", example="stage_timeouts: {build: 40m}"
    )
    memory: Size | None = key("memory that the lane may use", example="memory: 8GiB")
    pids: Annotated[int, Field(gt=0, lt=2**22)] | None = key("processes that the lane may start", example="pids: 4096")
    env: dict[Word, Text | None] | None = key("environment of the commands", example="env: {OMP_NUM_THREADS: 2}")
    passthrough: Words | None = key("host environment variables that may enter", example="passthrough: [HTTPS_PROXY]")
    runs_on: Words | None = key("labels of the CI runner", example="runs_on: [self-hosted, gfx1100]")
    paths: Words | None = key("globs of further files that affect the lane", example='paths: ["python/**"]')
    row: Word | None = key("row of the project's backend table that the lane belongs to", example="row: BACKEND-ROCM")
    model: Words | None = key(
        "globs of the files, inside the lane, that its gates measure with; their digest is in the record",
        example='model: "{env}/lib/python3*/site-packages/weights/*.gguf"',
    )
    require: Annotated[tuple[Evidence, ...], BeforeValidator(listed)] | None = key(
        "evidence that the lane must reach to be green", example="require: [built, exact]"
    )
    tags: Words | None = key("tags, for `nox -t` and `--select`; the backend is always one", example="tags: [nightly]")
    setup_inputs: Words | None = key(
        "files whose content decides whether the host executor's set-up runs again",
        example="setup_inputs: [pyproject.toml]",
    )


class Settings(Common):
    """What a backend, a toolkit, an arch, a variant, a product, an include and an override may set.

    `defaults` may set all of it but `stages` and `gates`, which stand at the top of the file for all lanes.
    """

    stages: dict[Commanded, Commands | None] | None = key(
        "shell commands by stage; `image` is the set-up of the host executor; `[]` or null takes the stage away",
        example='stages:\n  build: ["cmake --build {build}"]\n  test: ["ctest --test-dir {build}"]',
    )
    gates: dict[Literal["reach", "exact", "bench"], dict[str, Any] | None] | None = key(
        "gates of the lane, merged over the file's; null takes a gate away", example="gates: {bench: null}"
    )


class Toolkit(Settings):
    """One version of a backend's toolkit; the key is the version."""


class Arch(Settings):
    """An architecture: settings for a known one, a set of known ones, or the backend's own."""

    targets: Words | None = key("compile targets, when the name stands for several", example="targets: [sm_80, sm_90a]")
    family: Word | None = key("declares an architecture that no table knows, and its family", example="family: aarch64")
    wavefront: Annotated[int, Field(gt=0, le=1024)] | None = key(
        "lanes per wavefront of an architecture that is declared here", example="wavefront: 64"
    )


class Variant(Settings):
    """A way to build the same backend: another compiler, a sanitizer."""


class Backend(Settings):
    """One folder, one toolchain, one set of macros."""

    toolkits: dict[Name, Toolkit | None] = key(
        "toolkit versions", example='toolkits: {"7.0": {}, "6.4": {}}', default={}
    )
    toolkit: Word | None = key(
        "the default toolkit; lanes of another carry its version in their id", example='toolkit: "7.0"'
    )
    archs: dict[Name, Arch | None] = key(
        "settings by architecture", example="archs: {fat: {targets: [sm_80, sm_90a]}}", default={}
    )
    variants: dict[Name, Variant | None] = key(
        "settings by variant", example="variants: {clang: {compiler: clang}}", default={}
    )


class Product(Settings):
    """Lanes for every combination of the axes."""

    backend: Word = key("the backend", example="backend: rocm", default=...)
    toolkit: Annotated[Words, Field(min_length=1)] | None = key(
        "the toolkit axis; not given: the backend's default", example='toolkit: ["7.0", "6.4"]'
    )
    arch: OptionalWords | None = key(
        "the architecture axis; null: a lane without one", example="arch: [gfx1100, gfx1201]"
    )
    variant: OptionalWords | None = key("the variant axis; null: a lane without one", example="variant: [null, clang]")


class Include(Settings):
    """One more lane."""

    backend: Word = key("the backend", example="backend: cpu", default=...)
    toolkit: Word | None = key("the toolkit", example='toolkit: "6.4"')
    arch: Word | None = key("the architecture", example="arch: gfx942")
    variant: Word | None = key("the variant", example="variant: sanitize")


class Exclude(Part):
    """Combinations that don't exist. What is not named matches everything."""

    why: Annotated[Word, Field(min_length=3)] = key(
        "why they don't exist; `greenlane explain` says it",
        example="why: clang 21 has no gfx1250 device library",
        default=...,
    )
    lanes: Annotated[Words, Field(min_length=1)] | None = key("globs on lane ids", example='lanes: "rocm-*-clang"')
    backend: Word | None = key("glob on the backend", example="backend: rocm")
    toolkit: Word | None = key("glob on the toolkit", example='toolkit: "6.*"')
    arch: Word | None = key("glob on the architecture", example='arch: "gfx12*"')
    variant: Word | None = key("glob on the variant", example="variant: sanitize")

    @model_validator(mode="after")
    def _names_something(self) -> Exclude:
        if not self.model_fields_set - {"why"}:
            raise ValueError("an exclusion names lanes, backend, toolkit, arch or variant")
        return self


class Override(Settings):
    """Settings for the lanes that the globs match, applied in file order."""

    lanes: Annotated[Words, Field(min_length=1)] = key(
        "globs on lane ids; each must match", example='lanes: ["rocm-*", cuda-fat]', default=...
    )


class Lanes(Part):
    """Which lanes exist."""

    products: tuple[Product, ...] = key("products of axes", example="products:\n  - backend: cpu", default=())
    include: tuple[Include, ...] = key(
        "single lanes", example="include:\n  - {backend: cpu, variant: sanitize}", default=()
    )
    exclude: tuple[Exclude, ...] = key(
        "combinations of the products that don't exist",
        example="exclude:\n  - {arch: gfx942, why: no runner}",
        default=(),
    )
    overrides: tuple[Override, ...] = key(
        "settings by globs on lane ids", example='overrides:\n  - {lanes: "cuda-*", timeout: 2h}', default=()
    )


class KnownRedEntry(Part):
    """A red that somebody owns until a date."""

    lane: Word = key("glob on lane ids", example='lane: "rocm-gfx12*"', default=...)
    stage: Stage = key("the stage that is red", example="stage: build", default=...)
    fingerprint: Word = key(
        "fingerprint of the first error, as the record shows it", example="fingerprint: 3f9a2c77d01b", default=...
    )
    owner: Word = key("who mends it", example="owner: alice", default=...)
    since: Day = key("the day it was entered", example="since: 2026-11-02", default=...)
    expires: Day = key("the day it turns red", example="expires: 2026-12-01", default=...)
    link: Word | None = key("where it is discussed", example="link: https://example.org/issues/7")

    @model_validator(mode="after")
    def _ends_after_it_began(self) -> KnownRedEntry:
        if self.expires <= self.since:
            raise ValueError("`expires` must be later than `since`")
        return self


class MatrixFile(Part):
    """The whole file. Keys that begin with `x-` are free, for anchors."""

    version: Literal[1] = key("version of this language", example="version: 1", default=1)
    defaults: Common = key("settings of all lanes", example="defaults: {timeout: 30m}", default=Common())
    backends: dict[Name, Backend | None] = key("the backends", example="backends:\n  cpu: {compiler: gcc}", default=...)
    lanes: Lanes = key("which lanes exist", example="lanes:\n  products:\n    - backend: cpu", default=...)
    stages: dict[Commanded, Commands | None] = key(
        "commands of all lanes", example='stages: {build: ["make -j{jobs}"]}', default={}
    )
    gates: dict[Literal["reach", "exact", "bench"], dict[str, Any] | None] = key(
        "gates of all lanes; docs/gates.md", example='gates:\n  bench: {command: "./bench --json"}', default={}
    )
    checks: dict[str, Any] = key("the static checks; docs/checks.md", example="checks: {}", default={})
    constraints: Words = key(
        "formulas over macros that hold in every world", example='constraints: ["!(USE_CUDA && USE_HIP)"]', default=()
    )
    required: Words | None = key(
        "globs of the lanes that the required gate needs; not given: all but hosted_only and nightly ones",
        example='required: ["cpu*"]',
    )
    known_red: tuple[KnownRedEntry, ...] = key(
        "reds that somebody owns until a date", example="known_red: []", default=()
    )
    irrelevant: Words = key("globs of files that affect no lane", example='irrelevant: ["docs/**", "*.md"]', default=())
    templates: Inside | None = key(
        "folder of the project's own templates, relative to the matrix; docs/templates.md", example="templates: ci/look"
    )

"""`greenlane init`: a first matrix.yaml and noxfile.py for the project in a folder, from what its files say."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from greenlane.errors import EnvironmentMissing, MatrixError
from greenlane.lanes.survey import Backend, Survey, survey
from greenlane.ledger.store import write_durably

NOXFILE = '''\
# /// script
# dependencies = ["nox>=2025.2.9", "greenlane"]
# ///
"""`nox -l` lists the lanes of matrix.yaml; `nox -s LANE` runs one."""

from greenlane.nox import lanes

lanes("matrix.yaml")
'''
COPIED_MAKE = "tar -C {source} --exclude=./.git --exclude=./.greenlane -c . | tar -x && make -j {jobs}"
COMPILERS = {"cpu": "gcc", "cuda": "nvcc", "rocm": "hipcc"}
VENDORS = {"cuda": ("cuda", "nvidia"), "rocm": ("hip", "amd")}
TOOLKITS = {"cuda": "13.0", "rocm": "7.0"}


def command(arguments: argparse.Namespace) -> int:
    from greenlane.matrix.loading import compile_matrix

    root: Path = arguments.directory
    if not root.is_dir():
        raise MatrixError(f"{root}: no such folder")
    matrix = root / "matrix.yaml"
    if matrix.exists():
        raise MatrixError(f"{matrix} exists already; `greenlane list --matrix {matrix}` shows its lanes")
    found = survey(root)
    text = matrix_of(found)
    lanes = compile_matrix(text.encode(), str(matrix)).matrix.lanes
    _write(matrix, text)
    print(f"wrote {matrix}: {', '.join(lane.id for lane in lanes)}")
    _noxfile(root / "noxfile.py")
    print("next: read matrix.yaml, then `greenlane list`, `greenlane check` and `greenlane doctor`")
    return 0


def _noxfile(path: Path) -> None:
    if path.exists():
        print(f'{path} exists already; add to it:\n    from greenlane.nox import lanes\n    lanes("matrix.yaml")')
        return
    _write(path, NOXFILE)
    print(f"wrote {path}")


def _write(path: Path, text: str) -> None:
    try:
        write_durably(path, text.encode())
    except OSError as error:
        raise EnvironmentMissing(f"cannot write {path}: {error.strerror}") from error


def matrix_of(found: Survey) -> str:
    """The text of a first matrix, with a remark wherever the project knows better."""
    parts = [
        "# The lanes of this project, as `greenlane init` found them. Each line is a proposal: correct it.",
        "# Every key is explained in greenlane's docs/matrix.md; `greenlane explain LANE` says where a value is from.",
        "version: 1",
        "",
        "defaults:",
        "  timeout: 1h",
        *([f"  include_dirs: {_list(found.include_dirs)}"] if found.include_dirs else []),
        "",
        "backends:",
    ]
    for backend in found.backends:
        parts += [f"  {line}" if line else "" for line in _backend(backend, found)]
    parts += ["lanes:", "  products:", *(f"    - {_product(one)}" for one in found.backends), ""]
    parts += [*_constraints(found), "stages:", *(f"  {line}" for line in _stages(found)), "", *_checks(found)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _backend(backend: Backend, found: Survey) -> Iterator[str]:
    yield f"{backend.name}:"
    yield f"  row: BACKEND-{backend.name.upper()}"
    yield f"  compiler: {COMPILERS[backend.name]}"
    if backend.name in VENDORS:
        vendor, device = VENDORS[backend.name]
        yield f"  vendors: [{vendor}]"
        yield f"  device: {device} # whose card a run needs"
        yield f'  toolkits: {{"{TOOLKITS[backend.name]}": {{}}}} # the version that your image has'
    yield "  require: [checked, built] # add what a lane must prove: tested, exact, ran-on-target"
    yield from _image(backend)
    yield from _switches(backend, found)
    own = {source for other in found.backends if other.name != backend.name for source in other.sources}
    if not own and found.sources:
        yield f"  sources: {_list(found.sources)}"
    elif backend.sources or own:
        yield "  # sources: globs of the files that this backend compiles; until they are named, every file counts"
        yield f"  # not: {_list(sorted(own - set(backend.sources)))}"
    yield ""


def _image(backend: Backend) -> Iterator[str]:
    if backend.dockerfile:
        yield f"  dockerfile: {_word(backend.dockerfile)}"
    elif backend.name == "cpu":
        yield "  executor: host # or name a Dockerfile: `dockerfile: docker/cpu.Dockerfile`"
    else:
        yield "  # dockerfile: where the toolkit is; until it is named, the lane needs the toolkit on the host"


def _switches(backend: Backend, found: Survey) -> Iterator[str]:
    others = [one for one in found.backends if one.name != backend.name and one.option]
    if found.build == "python":
        if backend.option:
            yield f'  env: {{{backend.option}: "1"}}'
    elif found.build == "cmake":
        on = [f"{backend.option}: ON"] if backend.option else []
        switches = [*on, *(f"{one.option}: OFF" for one in others if one.option != backend.option)]
        if switches:
            yield f"  defines: {{{', '.join(switches)}}}"
    if backend.macro:
        yield f"  macros: {{{backend.macro}: 1}}"
    elif backend.name != "cpu":
        yield "  # macros: {USE_X: 1} # what the sources ask for in #if"


def _product(backend: Backend) -> str:
    arch = f", arch: {_list(backend.archs)}" if backend.archs else ""
    return f"{{backend: {backend.name}{arch}}}"


def _constraints(found: Survey) -> list[str]:
    macros = sorted({one.macro for one in found.backends if one.macro})
    if len(macros) < 2:
        return []
    return [
        "# Worlds that don't exist, so that no check reasons about them.",
        f'constraints: ["at_most_one({", ".join(macros)})"]',
        "",
    ]


def _stages(found: Survey) -> Iterator[str]:
    if found.build == "cmake":
        yield "configure: cmake -S {source} -B {build} {cmake_defines} -DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
        yield "build: cmake --build {build} -j {jobs}"
        if found.ctest:
            yield "test: ctest --test-dir {build} --output-on-failure"
        else:
            yield "# test: the command that runs the tests"
    elif found.build == "python":
        yield 'build: "{python} -m pip install --no-deps --target {prefix} {source}"'
        yield '# test: "PYTHONPATH={prefix} {python} -m pytest {source}/tests"'
    elif found.build == "make":
        yield "# A copy is built, since make writes beside its sources and a lane must leave the tree as it is."
        yield f"build: {_word(COPIED_MAKE)}"
    elif found.build == "headers":
        include = f" -I {{source}}/{found.include_dirs[0]}" if found.include_dirs else ""
        files = " ".join("{source}/" + shlex.quote(header) for header in found.headers[:20])
        yield f"build: {_word(f'g++ -std=c++17 -Wall -Wextra -fsyntax-only{include} -x c++ {files}')}"
    else:
        yield "# How is this project built? Until the command stands here the lane is red."
        yield "build: echo 'write the build command into matrix.yaml' >&2; exit 1"


def _checks(found: Survey) -> Iterator[str]:
    if found.mirrors:
        yield "checks:"
        yield "  mirrors: # these must offer the same functions"
        for left, right in found.mirrors:
            yield f"    - {{left: {_word(left)}, right: {_word(right)}}}"
        yield ""


def _list(words: tuple[str, ...] | list[str]) -> str:
    return json.dumps(list(words), ensure_ascii=False)


def _word(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

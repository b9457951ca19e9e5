"""`greenlane emulate`: runs a HIP program with the stand-in runtime in place of the vendor's."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import greenlane
from greenlane.emulator import build, outcome, toolchain
from greenlane.errors import EnvironmentMissing, LaneRed, MatrixError

ARCHITECTURES = ("gfx1100", "gfx1101", "gfx1102", "gfx1150", "gfx1151", "gfx1200", "gfx1201", "gfx90a", "gfx942")
# Files that the caller may ask for: launch counts (the second witness of `reach`), the sanitizer's findings, and what
# all runs so far have executed.
COUNTS, FINDINGS, COVERAGE = (f"GREENLANE_EMULATOR_{name}" for name in ("COUNTS", "FINDINGS", "COVERAGE"))


def command(arguments: argparse.Namespace) -> int:
    """Exit code of the program; 1 when the program ended well but the sanitizer found something."""
    program = [word for index, word in enumerate(arguments.program) if index or word != "--"]
    if not program:
        raise MatrixError("emulate: no program given: greenlane emulate --arch gfx1100 -- PROGRAM ARGS...")
    if arguments.arch not in ARCHITECTURES:
        raise MatrixError(f"emulate: unknown architecture {arguments.arch!r} (known: {', '.join(ARCHITECTURES)})")
    wanted = {name: Path(os.environ[name]).absolute() for name in (COUNTS, FINDINGS) if os.environ.get(name)}
    for stale in wanted.values():
        stale.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="greenlane-emulate-") as scratch:
        left = Path(scratch)
        status = run(program, environment(arguments.arch, os.environ, left, sanitize=arguments.sanitize))
        found, counted = outcome.findings(left), outcome.counts(left)
    if COUNTS in wanted and counted is not None:
        outcome.write(wanted[COUNTS], counted)
    if os.environ.get(COVERAGE) and counted is not None:
        outcome.add_coverage(Path(os.environ[COVERAGE]), counted)
    if FINDINGS in wanted and arguments.sanitize:
        outcome.write(wanted[FINDINGS], {"schema": 1, "findings": found})
    if status == 0 and (errors := [finding for finding in found if finding["severity"] == "error"]):
        first = f"{errors[0]['message']}, in {errors[0]['kernel']} at {errors[0]['source']}"
        raise LaneRed(f"emulate: the sanitizer found {len(errors)} error{'s'[: len(errors) > 1]}; the first: {first}")
    return status


def run(program: list[str], variables: Mapping[str, str]) -> int:
    """Runs the program to its end; a signal that killed it becomes 128 + its number, as a shell has it."""
    try:
        status = subprocess.run(program, env=dict(variables), check=False).returncode
    except FileNotFoundError:
        raise MatrixError(f"emulate: no such program: {program[0]}") from None
    except OSError as error:
        raise EnvironmentMissing(f"emulate: can't run {program[0]}: {error.strerror}") from None
    return status if status >= 0 else 128 - status


def environment(arch: str, given: Mapping[str, str], left: Path, *, sanitize: bool) -> dict[str, str]:
    """The program's environment: the library path, what the runtime needs to translate, and where it leaves counts."""
    tools = toolchain.find()
    cache = cache_folder(given) / toolchain.cache_key(tools)
    with ThreadPoolExecutor(2) as pool:  # both take seconds where the cache is empty
        header = pool.submit(build.precompiled, tools, cache, toolchain.lanes(arch), sanitize=sanitize)
        library = build.runtime(tools, cache)
        header.result()
    old = given.get("LD_LIBRARY_PATH")
    chosen = {
        "LD_LIBRARY_PATH": f"{library}{os.pathsep + old if old else ''}",
        "GREENLANE_EMULATOR_ARCH": arch,
        "GREENLANE_EMULATOR_CACHE": str(cache),
        "GREENLANE_EMULATOR_PYTHON": sys.executable,
        "GREENLANE_EMULATOR_ROOT": str(Path(greenlane.__file__).parent.parent),
        "GREENLANE_EMULATOR_SYMBOLIZER": tools.symbolizer,
        "GREENLANE_EMULATOR_TRANSLATOR": toolchain.sources_digest(),
        "GREENLANE_EMULATOR_OUTCOME": str(left),
    }
    if sanitize:
        chosen["GREENLANE_EMULATOR_SANITIZE"] = "1"
        chosen["GREENLANE_EMULATOR_ORDER"] = given.get("GREENLANE_EMULATOR_ORDER", "random:1")
        chosen["GREENLANE_EMULATOR_STEP_LIMIT"] = given.get("GREENLANE_EMULATOR_STEP_LIMIT", "1000000000")
    return {**given, **chosen}


def cache_folder(given: Mapping[str, str]) -> Path:
    """GREENLANE_EMULATOR_CACHE_DIR, else the user's cache; it must be writable."""
    named = given.get("GREENLANE_EMULATOR_CACHE_DIR")
    home = given.get("XDG_CACHE_HOME") or Path(given.get("HOME") or "/tmp") / ".cache"
    folder = Path(named) if named else Path(home) / "greenlane" / "emulator"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentMissing(
            f"emulate: can't write the cache {folder}: {error.strerror}; name another by GREENLANE_EMULATOR_CACHE_DIR"
        ) from None
    return folder

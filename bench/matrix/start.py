"""What a big matrix costs at start: `nox -l`, `greenlane list --github`, memory, and hostile files; ratios and medians.

    python bench/matrix/start.py [--rounds 5]

Prints one line per figure with its budget, and ratios that a busy machine leaves alone. It fails only when something
that it measures fails, never on time.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CHILD = (sys.executable, "-c", "import sys; from greenlane.cli import main; sys.exit(main(sys.argv[1:]))")
HOSTILE = {
    "aliases of aliases": "x-a: &a [x, x, x, x, x, x, x, x]\n"
    + "".join(f"x-{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "10 MB": "x-a: [" + "a," * 5_000_000 + "]\n",
    "two million values": "x-a: [" + "a," * 2_000_000 + "]\n",
    "deep nesting": "x-a: " + "[" * 1_900_000,
    "a cycle": "x-a: &a [*a]\n",
    "70,000 unknown keys": "".join(f"a{n}: 1\n" for n in range(70_000)),
}


def matrix(lanes: int) -> str:
    """A matrix with this many lanes: 10 backends, archs and variants, overrides that match."""
    per = lanes // 10
    lines = ["defaults: {timeout: 20m, macros: {COMMON: 1}}", "backends:"]
    for backend in range(10):
        variants = ", ".join(f"v{n}: {{macros: {{V{n}: 1}}}}" for n in range(per))
        lines += [
            f"  b{backend}:",
            "    row: ROW",
            "    require: [checked, built]",
            "    dockerfile: d",
            f"    variants: {{{variants}}}",
        ]
    lines += ["lanes:", "  products:"]
    lines += [f"    - {{backend: b{b}, variant: [{', '.join(f'v{n}' for n in range(per))}]}}" for b in range(10)]
    lines += [
        "  overrides:",
        '    - {lanes: "b1-*", timeout: 30m}',
        "constraints: ['!(V0 && V1)']",
        "stages: {build: make}",
    ]
    return "\n".join(lines) + "\n"


def measure(command: tuple[str, ...], folder: Path, *, may_fail: bool = False) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak megabytes of one run."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    before = os.times()
    child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode and not may_fail:
        sys.exit(f"{' '.join(command[-4:])} failed: {said.decode()[-500:]}")
    return usage.ru_utime + usage.ru_stime, os.times().elapsed - before.elapsed, usage.ru_maxrss / 1024


def median(rounds: int, *runs: Callable[[], tuple[float, float, float]]) -> list[tuple[float, ...]]:
    """Medians of interleaved runs."""
    samples: list[list[tuple[float, float, float]]] = [[] for _ in runs]
    for _ in range(rounds):
        for kept, run in zip(samples, runs, strict=True):
            kept.append(run())
    return [tuple(statistics.median(column) for column in zip(*kept, strict=True)) for kept in samples]


def project(folder: Path, lanes: int) -> Path:
    folder.mkdir()
    (folder / "matrix.yaml").write_text(matrix(lanes))
    (folder / "noxfile.py").write_text('from greenlane.nox import lanes\n\nlanes("matrix.yaml")\n')
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as name:
        return report(Path(name), rounds)


def report(folder: Path, rounds: int) -> int:
    (folder / "empty").mkdir()
    (folder / "empty" / "noxfile.py").write_text("import nox\n")
    thousand, five = project(folder / "thousand", 1000), project(folder / "five", 5000)
    nox = (sys.executable, "-m", "nox", "-l")
    listing = (*CHILD, "list", "--github", "--matrix", "matrix.yaml")
    cold_nox, cold = measure(nox, thousand), measure(listing, five)
    empty, lanes, warm, python = median(
        rounds,
        lambda: measure(nox, folder / "empty", may_fail=True),  # nox refuses a file without sessions
        lambda: measure(nox, thousand),
        lambda: measure(listing, five),
        lambda: measure((sys.executable, "-c", "import json, pathlib, argparse"), folder),
    )
    rows = [
        ("nox -l, 1,000 lanes: CPU over an empty noxfile", (lanes[0] - empty[0]) * 1000, 150.0, "ms"),
        ("list --github, 5,000 lanes, again, wall", warm[1] * 1000, 1000.0, "ms"),
        ("list --github, 5,000 lanes, first time, CPU", cold[0] * 1000, 1000.0, "ms"),
        ("nox -l, 1,000 lanes, first time: CPU over an empty noxfile", (cold_nox[0] - empty[0]) * 1000, None, "ms"),
        ("list --github, 5,000 lanes, peak memory, again", warm[2], 150.0, "MB"),
        ("list --github, 5,000 lanes, peak memory, first time", cold[2], 150.0, "MB"),
    ]
    for name, text in HOSTILE.items():
        (folder / "hostile.yaml").write_text(text)
        refuse = (*CHILD, "list", "--matrix", "hostile.yaml")
        ((cpu, _, megabytes),) = median(min(rounds, 3), lambda command=refuse: measure(command, folder, may_fail=True))
        rows.append((f"refusing {name}, CPU", cpu * 1000, 2000.0, "ms"))
        rows.append((f"refusing {name}, peak memory", megabytes, 200.0, "MB"))
    for name, value, budget, unit in rows:
        share = f"{value / budget:5.0%} of {budget:.0f} {unit}" if budget else "no budget"
        print(f"{name:60} {value:8.1f} {unit}  {share}")
    print(f"{'nox -l with 1,000 lanes / with none, CPU':60} {lanes[0] / empty[0]:8.2f} x")
    print(f"{'list of 5,000 lanes / a bare Python start, CPU':60} {warm[0] / python[0]:8.2f} x")
    print(f"{'list of 5,000 lanes, first time / again, CPU':60} {cold[0] / warm[0]:8.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())

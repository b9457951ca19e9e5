"""`python -m bench.emulator.llama_cpp`: llama.cpp's own operation tests on its HIP backend, under the emulator.

Takes the sources out of llama-cpp-python's source distribution, builds the HIP backend for one architecture in the ROCm
lane's image, runs `test-backend-ops` operation by operation, and prints the counts. Building takes long; `--work` names
a folder that keeps what was built.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.emulator.engine import ROOT, image_of, run_in

PACKAGE = "llama-cpp-python==0.3.36"
PROJECT = ROOT / "tests" / "nightly" / "emulator_llama_cpp"
FAST = ("SQR", "SCALE", "RMS_NORM", "SOFT_MAX", "ROPE", "GET_ROWS", "ARGSORT", "SUM_ROWS", "CPY", "SILU")
BUILD = (
    "cmake -S /project -B /kept/build -G Ninja -DLLAMA_CPP=/kept/llama.cpp -DCMAKE_BUILD_TYPE=Release"
    " -DCMAKE_HIP_ARCHITECTURES={arch} -DCMAKE_HIP_COMPILER=clang++-21 -DCMAKE_CXX_COMPILER=clang++-21"
    " -DCMAKE_C_COMPILER=clang-21 -DCMAKE_HIP_FLAGS=-gline-tables-only && cmake --build /kept/build -j {jobs}"
)


@dataclass
class Counts:
    """How the cases of one operation ended; `end` says what stopped them, if anything did."""

    op: str
    passed: int
    failed: int
    unsupported: int
    end: str


def sources(work: Path) -> None:
    """Leaves the parts of llama.cpp that the build needs in `work`/llama.cpp."""
    if (work / "llama.cpp").is_dir():
        return
    with tempfile.TemporaryDirectory(dir=work) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder]
        subprocess.run([*pip, PACKAGE], check=True)
        [archive] = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            prefix = f"{archive.name.removesuffix('.tar.gz')}/vendor/llama.cpp/"
            wanted = [prefix + part for part in ("ggml/", "tests/test-backend-ops.cpp")]
            members = [one for one in packed.getmembers() if one.name.startswith(tuple(wanted))]
            packed.extractall(folder, members=members, filter="data")
        (Path(folder) / prefix).rename(work / "llama.cpp")


def in_image(work: Path, arch: str, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in the lane's image, where /kept is `work`."""
    places = {work: "/kept", PROJECT: "/project:ro", ROOT / "greenlane": "/tool/greenlane:ro"}
    return run_in(image_of(arch, ROOT), ["bash", "-c", script], places, variables)


def build(work: Path, arch: str) -> None:
    done = in_image(work, arch, BUILD.format(arch=arch, jobs=len(os.sched_getaffinity(0))))
    if done.returncode:
        sys.exit(f"llama.cpp does not build: {done.stdout[-3000:]}{done.stderr[-1000:]}")


def run(work: Path, arch: str, op: str, limit_s: int, cases: str | None) -> Counts:
    """One operation's cases, for as long as the limit allows."""
    libraries = "/kept/build:/kept/build/ggml/src:/kept/build/ggml/src/ggml-hip"
    select = f"-p '{cases}'" if cases else ""
    test = f"/kept/build/test-backend-ops test -b ROCm0 -o {op} {select}"
    done = in_image(
        work,
        arch,
        f"timeout {limit_s} python3 -m greenlane emulate --arch {arch} -- {test} 2>&1",
        PYTHONPATH="/tool",
        LD_LIBRARY_PATH=libraries,
        GREENLANE_EMULATOR_CACHE_DIR="/kept/cache",
    )
    return counted(op, done.stdout, done.returncode, limit_s)


def counted(op: str, output: str, code: int, limit_s: int) -> Counts:
    """
    >>> counted("ADD", "ADD(a): \\x1b[1;32mOK\\x1b[0m\\nADD(b): not supported [ROCm0]\\n", 0, 60)
    Counts(op='ADD', passed=1, failed=0, unsupported=1, end='')
    >>> counted("ADD", "ADD(a): OK\\n", 124, 60).end
    'stopped after 60 s'
    """
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()
    failed = sum(": FAIL" in line or line.rstrip().endswith("FAIL") for line in lines if line.lstrip().startswith(op))
    ends = {0: "", 1: "" if failed else "exit code 1", 124: f"stopped after {limit_s} s"}
    said = next((line for line in reversed(lines) if "greenlane emulate:" in line or "symbol lookup" in line), "")
    return Counts(
        op=op,
        passed=sum("): OK" in line for line in lines),
        failed=failed,
        unsupported=sum("not supported" in line for line in lines),
        end=ends.get(code, said or f"exit code {code}"),
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="gfx1100")
    parser.add_argument("--work", type=Path, help="keeps sources, build and cache")
    parser.add_argument("--op", action="append", default=[], help="an operation (repeatable); default: quick ones")
    parser.add_argument("--cases", help="regular expression on a case's parameters")
    parser.add_argument("--limit", type=int, default=300, help="seconds for each operation")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        work = (arguments.work or Path(scratch)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        sources(work)
        build(work, arguments.arch)
        found = [run(work, arguments.arch, op, arguments.limit, arguments.cases) for op in arguments.op or FAST]
    if arguments.json:
        print(json.dumps([asdict(one) for one in found]))
    else:
        print("| operation | passed | failed | unsupported | end |\n|---|---|---|---|---|")
        print("\n".join(f"| {c.op} | {c.passed} | {c.failed} | {c.unsupported} | {c.end} |" for c in found))
    return 1 if any(one.failed or one.end for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Registers and spills of every HIP kernel: `python -m bench.gpu.resources gfx1100` in an image with clang and HIP.

Compiles csrc/gpu once per architecture, prints the most registers a source file's kernels need and what they spill, and
ends with 1 if any kernel spills vector registers or the compiler warns.
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
ARCHITECTURES = ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
FIELDS = ("VGPRs", "SGPRs Spill", "VGPRs Spill")


def compile_kernels(source: Path, architecture: str) -> str:
    command = ["clang++-21", "-x", "hip", "-std=c++20", "-O3", f"--offload-arch={architecture}", "--cuda-device-only"]
    command += ["-Wall", "-Wextra", "-Rpass-analysis=kernel-resource-usage", "-I", "csrc", "-I", "backends/rocm"]
    done = subprocess.run(
        [*command, "-c", source, "-o", "/dev/null"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stderr


def most(report: str, field: str) -> int:
    return max((int(value) for value in re.findall(rf"remark: .*?\s{field}: (\d+)", report)), default=0)


def main() -> int:
    sources = sorted((ROOT / "csrc" / "gpu").glob("*.cu"))
    failed = False
    for architecture in sys.argv[1:] or ARCHITECTURES:
        with ThreadPoolExecutor(2) as pool:
            reports = list(pool.map(lambda source, arch=architecture: compile_kernels(source, arch), sources))
        for source, report in zip(sources, reports, strict=True):
            kernels, warnings = report.count("Function Name:"), report.count("warning:")
            figures = "  ".join(f"{field} {most(report, field)}" for field in FIELDS)
            print(
                f"{architecture:<8} {source.name:<22} {kernels:>3} kernels  {figures}  warnings {warnings}", flush=True
            )
            failed |= most(report, "VGPRs Spill") > 0 or warnings > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

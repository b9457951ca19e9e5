"""Time of `greenlane check` on a generated tree of 500 files in five lanes: cold, warm, one file changed; peak memory.

    python bench/checks/speed.py [--files 500] [--repeat 3]

The tree is made of the fixture's shapes: guarded dispatch, launchers, helpers, classes; about 265 lines a file.
With --build the host units of the same five lanes go through g++ -O2, for comparison.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LANE_MACROS = {
    "cpu": "",
    "cuda80": "-DUSE_CUDA",
    "cuda90": "-DUSE_CUDA",
    "rocm1100": "-DUSE_HIP",
    "rocm942": "-DUSE_HIP",
}
MATRIX = """version: 1
constraints: ["at_most_one(USE_CUDA, USE_HIP)"]
defaults: {include_dirs: [include]}
backends:
  cpu: {sources: ["src/*.cpp"]}
  cuda: {macros: {USE_CUDA: 1}, vendors: [cuda], sources: ["src/*.cpp", "src/cuda/*.cu"]}
  rocm: {macros: {USE_HIP: 1}, vendors: [hip], sources: ["src/*.cpp", "src/rocm/*.hip"]}
lanes:
  products:
    - {backend: cpu}
    - {backend: cuda, arch: [sm_80, sm_90]}
    - {backend: rocm, arch: [gfx1100, gfx942]}
"""


def function(unit: int, number: int) -> str:
    return f"""
int stage_{unit}_{number}(const float* input, float* output, int rows, int columns) {{
  float total = 0.0f;
  for (int row = 0; row < rows; ++row) {{
    for (int column = 0; column < columns; ++column) {{
      total += input[row * columns + column] * static_cast<float>(column + {number});  // a comment of some length
    }}
    output[row] = total;
  }}
#if defined(USE_CUDA) || defined(USE_HIP)
  launch_{unit}(output, rows, columns, {number});
#endif
  return helper_{unit}(rows, columns) + static_cast<int>(total);
}}
"""


def write_tree(root: Path, count: int) -> None:
    (root / "matrix.yaml").write_text(MATRIX)
    for folder in ("include", "src/cuda", "src/rocm"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    units = count // 4
    for unit in range(units):
        neighbours = "".join(f'#include "unit_{(unit + step) % units}.h"\n' for step in range(1, 6))
        header = "".join(
            f"int stage_{unit}_{n}(const float* input, float* output, int rows, int columns);\n" for n in range(20)
        )
        header += f"void launch_{unit}(float* output, int rows, int columns, int number);\n"
        types = "".join(
            f"struct Shape_{unit}_{n} {{\n  int rows = {n};\n  int columns = 0;\n"
            "  int size() const { return rows * columns; }\n};\n\n"
            for n in range(40)
        )
        (root / f"include/unit_{unit}.h").write_text(f"#pragma once\n{types}{header}")
        helper = (
            f"namespace {{\nint helper_{unit}(int rows, int columns) {{ return rows * columns; }}\n}}  // namespace\n"
        )
        body = "".join(function(unit, number) for number in range(18))
        (root / f"src/unit_{unit}.cpp").write_text(f'#include "unit_{unit}.h"\n{neighbours}{helper}{body}')
        for folder, suffix, header_name in (("cuda", "cu", "cuda_runtime.h"), ("rocm", "hip", "hip/hip_runtime.h")):
            kernels = "".join(
                f"\n__global__ void kernel_{unit}_{n}(float* output, int rows, int columns) {{\n"
                + "".join(
                    f"  if (threadIdx.x == {line} && rows > {line}) output[{line}] += columns;\n" for line in range(20)
                )
                + "}\n"
                for n in range(11)
            )
            launches = "".join(f"  kernel_{unit}_{n}<<<rows, 128>>>(output, rows, columns);\n" for n in range(11))
            (root / f"src/{folder}/unit_{unit}.{suffix}").write_text(
                f'#include <{header_name}>\n#include "unit_{unit}.h"\n{kernels}\n'
                f"void launch_{unit}(float* output, int rows, int columns, int number) {{\n{launches}"
                "  output[0] += number;\n}\n"
            )


class Cost(NamedTuple):
    wall_s: float
    cpu_s: float  # of all processes
    peak_mb: float


def measured(words: list[str], root: Path, environment: dict[str, str]) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    ran = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(words[:6])} failed:\n{(ran.stdout + ran.stderr)[:2000]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(took, cpu, after.ru_maxrss / 1024)


def check(root: Path, cache: Path) -> Cost:
    """One call of the command line, as an installed greenlane runs: with its bytecode on disk."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return measured([sys.executable, "-m", "greenlane", "check", "-C", str(root)], root, environment)


def build(root: Path) -> Cost:
    """The host units of all five lanes through g++ -O2, two at a time; device code needs toolkits and is left out."""
    lines = ["all:" + "".join(f" {name}" for name in _objects(root))]
    for lane, macro in LANE_MACROS.items():
        for unit in sorted((root / "src").glob("*.cpp")):
            lines.append(f"{lane}-{unit.stem}:\n\tg++ -std=c++20 -O2 -Iinclude {macro} -c {unit} -o /dev/null")
    (root / "build.mk").write_text("\n".join(lines) + "\n")
    return measured(["make", "-s", "-j2", "-f", "build.mk"], root, dict(os.environ))


def _objects(root: Path) -> list[str]:
    return [f"{lane}-{unit.stem}" for lane in LANE_MACROS for unit in sorted((root / "src").glob("*.cpp"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--build", action="store_true", help="build the lanes' host units for comparison")
    arguments = parser.parse_args()
    costs: dict[str, list[Cost]] = {"cold": [], "warm": [], "one file changed": []}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "tree"
        root.mkdir()
        write_tree(root, arguments.files)
        sources = [path for path in root.rglob("*") if path.suffix in {".h", ".cpp", ".cu", ".hip"}]
        lines = sum(path.read_text().count("\n") for path in sources)
        print(f"{len(sources)} files, {lines} lines, 5 lanes; load {os.getloadavg()[0]:.1f}")
        check(root, Path(scratch) / "first")  # writes the bytecode
        for turn in range(arguments.repeat):
            cache = Path(scratch) / f"cache-{turn}"
            costs["cold"].append(check(root, cache))
            costs["warm"].append(check(root, cache))
            unit = root / "src/unit_3.cpp"
            unit.write_text(unit.read_text() + f"\nint changed_{turn}() {{ return {turn}; }}\n")
            costs["one file changed"].append(check(root, cache))
        for name, taken in costs.items():
            walls = [cost.wall_s for cost in taken]
            cpu = statistics.median(cost.cpu_s for cost in taken)
            print(
                f"{name:17} {statistics.median(walls):6.2f} s  ({min(walls):.2f} to {max(walls):.2f}; CPU {cpu:.2f} s)"
            )
        print(f"peak memory       {max(cost.peak_mb for taken in costs.values() for cost in taken):6.0f} MB")
        if arguments.build:
            built = build(root)
            print(f"build             {built.wall_s:6.2f} s  (CPU {built.cpu_s:.2f} s), host units of the five lanes")
            for name, taken in costs.items():
                wall = statistics.median(cost.wall_s for cost in taken)
                cpu = statistics.median(cost.cpu_s for cost in taken)
                print(f"build / {name:16} {built.wall_s / wall:6.1f}  (by CPU {built.cpu_s / cpu:.1f})")


if __name__ == "__main__":
    main()

"""Time of `greenlane check` on a generated tree of 500 files in five lanes: cold, warm, one file changed; peak memory.

    python bench/checks/speed.py [--files 500] [--repeat 3]

The tree is made of the fixture's shapes: guarded dispatch, launchers, helpers, classes; about 265 lines a file.
With --build the CPU lane of the same tree goes through g++ -fsyntax-only, for comparison.
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

ROOT = Path(__file__).resolve().parents[2]
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


def run(root: Path, cache: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of one call of the command line."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "greenlane", "check", "-C", str(root)], env=environment, stdout=subprocess.PIPE
    )
    said, _ = process.communicate()
    took = time.perf_counter() - began
    if process.returncode != 0:
        sys.exit(f"the generated tree is not clean:\n{said.decode()[:2000]}")
    return took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--build", action="store_true", help="compile the CPU lane's units for comparison")
    arguments = parser.parse_args()
    cold, warm, changed, peak = [], [], [], 0.0
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "tree"
        root.mkdir()
        write_tree(root, arguments.files)
        sources = [path for path in root.rglob("*") if path.suffix in {".h", ".cpp", ".cu", ".hip"}]
        lines = sum(path.read_text().count("\n") for path in sources)
        print(f"{len(sources)} files, {lines} lines, 5 lanes")
        for turn in range(arguments.repeat):
            cache = Path(scratch) / f"cache-{turn}"
            took, peak = run(root, cache)
            cold.append(took)
            warm.append(run(root, cache)[0])
            unit = root / "src/unit_3.cpp"
            unit.write_text(unit.read_text() + f"\nint changed_{turn}() {{ return {turn}; }}\n")
            changed.append(run(root, cache)[0])
        for name, times in (("cold", cold), ("warm", warm), ("one file changed", changed)):
            print(f"{name:17} {statistics.median(times):6.2f} s   ({min(times):.2f} to {max(times):.2f})")
        print(f"peak memory       {peak:6.0f} MB")
        if arguments.build:
            began = time.perf_counter()
            for unit in sorted((root / "src").glob("*.cpp")):
                subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-Iinclude", str(unit)], cwd=root, check=True)
            print(f"g++ -fsyntax-only {time.perf_counter() - began:6.2f} s, CPU lane alone, one process")


if __name__ == "__main__":
    main()

"""`python -m bench.emulator.figures`: what the emulated lane of SmolLM2 costs. Needs Docker and the lane's build.

Cold: an empty cache, so the runtime, the headers and every kernel of the run are compiled. Cached: the same command
again. The difference of the two is what translating and compiling cost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.emulator.engine import CORPUS, Engine, generate

# Runs its arguments and prints, on standard error, the processor time and the largest resident set among its children.
MEASURE = (
    "import resource,subprocess,sys; code=subprocess.call(sys.argv[1:]);"
    "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
    "print('MEASURED',u.ru_utime+u.ru_stime,u.ru_maxrss*1024,file=sys.stderr); sys.exit(code)"
)
LONG = ",".join(str(3000 + 7 * i % 40000) for i in range(128))


def measured(engine: Engine, *command: str) -> tuple[float, float, int, dict[str, Any]]:
    """Wall seconds, processor seconds, bytes of the largest process, and what the engine printed."""
    emulate = ["python3", "-m", "greenlane", "emulate", "--arch", engine.arch, "--", *command]
    started = time.monotonic()
    done = engine.run("python3", "-c", MEASURE, *emulate)
    wall = time.monotonic() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    line = next(line for line in done.stderr.splitlines() if line.startswith("MEASURED"))
    _, seconds, resident = line.split()
    return wall, float(seconds), int(resident), json.loads(done.stdout) if done.stdout.startswith("{") else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default="gfx1100")
    parser.add_argument("--tokens", type=int, default=32, help="tokens of the decode figure")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        Path(folder).chmod(0o755)
        engine = Engine(arguments.arch, Path(folder) / "cache")
        engine.build()
        short = generate(CORPUS + "," + LONG[:120].rpartition(",")[0], 2)
        cold, cached = measured(engine, *short), measured(engine, *short)
        start = measured(engine, "true")
        bare = time.monotonic()
        engine.run("true")
        bare = time.monotonic() - bare
        decode = measured(engine, *generate(CORPUS, arguments.tokens))
        prefill = measured(engine, *generate(LONG, 1))
        engine.run("chmod", "-R", "a+rwX", "/cache")
    timings = decode[3]["timings"]
    wall, seconds = cold[0] - cached[0], cold[1] - cached[1]
    print(f"cold, translate and compile   {wall:6.1f} s wall, {seconds:.1f} s of CPU (budget 20 s)")
    print(f"start from the cache          {start[0] - bare:6.2f} s (budget 0.5 s)")
    print(f"decode, one sequence          {1 / timings['decode_tokens_per_s']:6.2f} s a token (budget 1 s)")
    print(f"prefill of 128 tokens         {128 / prefill[3]['timings']['prefill_tokens_per_s']:6.1f} s (budget 60 s)")
    print(f"memory, largest process       {max(decode[2], prefill[2], cached[2]) / 2**30:6.2f} GiB (budget 2 GiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What greenlane adds to a lane: over a bare `docker run` of its commands, for an unchanged lane, and between lanes.

    python bench/lanes/cost.py [--rounds 5]

Needs a container daemon and the image debian:forky (`greenlane images seed`). Prints medians of interleaved runs; an
otherwise idle machine is assumed, and its load is printed beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "debian:forky"
COMMANDS = {
    "configure": "for n in 1 2 3; do echo configure $n; done; sleep 0.3",
    "build": "for n in 1 2 3; do echo build $n; done; sleep 0.3; echo built > built",
    "test": "cat built; sleep 0.3",
}
BURN = "perl -e '$x += $_ for 1..3e7'"  # a second or two of one core
CORES = 2  # lanes side by side, and the cores that they are to keep busy


def project(folder: Path, lanes: int, stages: dict[str, str]) -> Path:
    """A repository with this many lanes in a bare base image."""
    (folder / "docker").mkdir(parents=True)
    (folder / "docker/box.Dockerfile").write_text(f"FROM {IMAGE}\n")
    (folder / ".gitignore").write_text(".greenlane/\n")
    names = [f"v{n}" for n in range(lanes)]
    backend = {
        "executor": "docker", "dockerfile": "docker/box.Dockerfile", "require": ["checked", "built"], "row": "R",
        "stages": stages, "variants": {name: {} for name in names},
    }  # fmt: skip
    matrix = {"backends": {"cpu": backend}, "lanes": {"products": [{"backend": "cpu", "variant": names}]}}
    (folder / "matrix.yaml").write_text(json.dumps(matrix))
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "bench")):
        subprocess.run(["git", *identity, *command], cwd=folder, check=True)
    return folder


def greenlane(folder: Path, *arguments: str) -> float:
    """Wall seconds of one call."""
    command = [sys.executable, "-m", "greenlane", *arguments]
    started = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.monotonic() - started


def bare(folder: Path) -> float:
    """The same commands by the docker command, behind the same walls."""
    (folder / "scratch").mkdir(exist_ok=True)
    (folder / "scratch").chmod(0o777)
    walls = ["--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--init"]
    mounts = ["-v", f"{folder}:/source:ro", "-v", f"{folder}/scratch:/build", "-w", "/build", "-u", "65532:65532"]
    script = "\n".join(COMMANDS.values())
    started = time.monotonic()
    command = ["docker", "run", "--rm", *walls, *mounts, IMAGE, "sh", "-ec", script]
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - started


def idle() -> tuple[int, int]:
    """(idle, all) ticks of the machine so far; waiting for a disk is not idle."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return ticks[3], sum(ticks)


def single(folder: Path, rounds: int) -> None:
    lane = project(folder, 1, COMMANDS)
    greenlane(lane, "images", "build")
    first, ours, theirs, again = greenlane(lane, "run", "cpu-v0"), [], [], []
    for _ in range(rounds):
        theirs.append(bare(lane))
        ours.append(greenlane(lane, "run", "cpu-v0", "--fresh"))
        again.append(greenlane(lane, "run", "cpu-v0"))
    run, docker, known = map(statistics.median, (ours, theirs, again))
    print(f"docker run of the lane's commands                {docker:6.2f} s")
    print(f"greenlane run --fresh (the first: {first:.2f} s)         {run:6.2f} s")
    print(f"its own cost                                     {run - docker:6.2f} s  (budget 2 s)")
    print(f"the same lane unchanged, answered from a record  {known:6.2f} s  (budget 1 s)")


def many(folder: Path, lanes: int) -> None:
    """How busy `--jobs 2` keeps two cores with lanes that compute on one core each."""
    here = project(folder, lanes, {"build": BURN, "test": BURN})
    names = [f"cpu-v{n}" for n in range(lanes)]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    before, everything = idle()
    seconds = greenlane(here, "run", *names, "--jobs", str(CORES))
    after, total = idle()
    cores = os.cpu_count() or 1
    share = (after - before) / (total - everything)
    spare = max(0.0, (share * cores - (cores - CORES)) / CORES)
    print(f"{lanes} lanes, --jobs {CORES}: {seconds:.1f} s, the cores were idle for {spare:.1%} of it  (budget 10 %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lanes", type=int, default=20)
    arguments = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="greenlane-bench-") as name:
        Path(name).chmod(0o755)
        single(Path(name) / "single", arguments.rounds)
        many(Path(name) / "many", arguments.lanes)


if __name__ == "__main__":
    main()

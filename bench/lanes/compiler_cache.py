"""How much a warm compiler cache saves: a lane built from nothing with an empty cache, then again with the filled one.

    python bench/lanes/compiler_cache.py [LANE...]        (default: cuda-sm_90)

Works in a clone of this repository, so that the caches of the checkout stay as they are.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def build(clone: Path, lane: str) -> dict[str, Any]:
    """The build stage of one fresh run."""
    command = [sys.executable, "-m", "greenlane", "run", lane, "--until", "build", "--fresh"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        sys.exit(f"{lane}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    records = sorted((clone / ".greenlane/ledger/records").rglob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    stages = json.loads(records[-1].read_text())["stages"]
    return next(dict(stage) for stage in stages if stage["stage"] == "build")


def main(lanes: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="greenlane-bench-") as folder:
        Path(folder).chmod(0o755)
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        for lane in lanes:
            cold, warm = build(clone, lane), build(clone, lane)
            cache = warm["measurements"]["ccache"]
            print(
                f"{lane}: cold {cold['duration_s']:.1f} s, warm {warm['duration_s']:.1f} s, "
                f"{warm['duration_s'] / cold['duration_s']:.1%} of it (budget a third); "
                f"{cache['hits']} hits, {cache['misses']} misses"
            )


if __name__ == "__main__":
    main(sys.argv[1:] or ["cuda-sm_90"])

"""Review and comment for 1,000 lanes with 10,000 records of history: time, memory, length; ledger insert beside it.

python bench/review/thousand_lanes.py
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from greenlane.ledger import Ledger
from greenlane.matrix.loading import compile_matrix
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.digests import gates_digest
from greenlane.record.fingerprint import fingerprint
from greenlane.record.git import git, git_text
from greenlane.record.model import Digests, FirstError, Outcome, Record, StageResult
from greenlane.report.comment import BUDGET, render
from greenlane.review.review import Asked, review

LANES = 1_000
HISTORY = 10  # records per lane
IDENTITY = {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        commits = repository(root)
        ledger = Ledger(root / ".greenlane" / "ledger")
        inserts = fill(ledger, root, commits)
        print(f"ledger insert: median {1e3 * statistics.median(inserts):.2f} ms of {len(inserts)}")
        subprocess.run([sys.executable, __file__, scratch], check=True)


def measure(root: Path) -> None:
    ledger = Ledger(root / ".greenlane" / "ledger")
    started, worked = time.perf_counter(), time.process_time()
    told = review(ledger, Asked(root, "matrix.yaml", "main", "change", body="Builds clean. Token-exact on gfx1100."))
    comment = render(told)
    seconds, busy = time.perf_counter() - started, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    red = sum(lane.blocks for lane in told.lanes)
    print(f"review and comment: {seconds:.2f} s (budget 2), of it {busy:.2f} s of CPU, peak {peak:.0f} MB (budget 300)")
    print(f"comment: {len(comment)} of {BUDGET} characters for {len(told.lanes)} lanes, {red} of them blocking")


def repository(root: Path) -> list[str]:
    """A main branch of HISTORY commits and a change on top; returns the commits, newest last."""
    variants = "".join(f"\n    v{number}: {{defines: {{N: '{number}'}}}}" for number in range(LANES))
    names = ", ".join(f"v{number}" for number in range(LANES))
    git(root, "init", "-q", "-b", "main")
    (root / "matrix.yaml").write_text(
        "stages: {build: [make]}\ndefaults: {require: [checked, built]}\n"
        f"backends:\n  cpu:\n   compiler: gcc\n   variants: {variants}\n"
        f"lanes:\n  products:\n    - {{backend: cpu, variant: [{names}]}}\n"
    )
    (root / ".gitignore").write_text(".greenlane\n")
    commits = []
    for number in range(HISTORY):
        if number == HISTORY - 1:
            git(root, "checkout", "-q", "-b", "change")
        (root / "source.cpp").write_text(f"int version = {number};\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", f"number {number}", env=IDENTITY)
        commits.append(git_text(root, "rev-parse", "HEAD"))
    return commits


def fill(ledger: Ledger, root: Path, commits: list[str]) -> list[float]:
    lanes = compile_matrix((root / "matrix.yaml").read_bytes(), "matrix.yaml").matrix.lanes
    seconds = []
    for age, commit in enumerate(commits):
        for position, lane in enumerate(lanes):
            record = made(lane, commit, age, red=position % 3 == 0)
            started = time.perf_counter()
            ledger.put(record)
            seconds.append(time.perf_counter() - started)
    return seconds


def made(lane: Lane, commit: str, age: int, *, red: bool) -> Record:
    message = f"too few arguments to `combine_{lane.variant}`: expected 12, have 9"
    error = FirstError(message=message, fingerprint=fingerprint(message), file="source.cpp", line=1)
    build = StageResult(
        stage=Stage.BUILD, outcome=Outcome.FAIL if red else Outcome.PASS, first_error=error if red else None
    )
    return Record(
        schema=1,
        lane=lane.id,
        head=commit,
        dirty=False,
        digests=Digests(matrix="m", lane=lane.digest, tree=commit, inputs=gates_digest(lane)),
        evidence=(Evidence.CHECKED,) if red else (Evidence.CHECKED, Evidence.BUILT),
        stages=(StageResult(stage=Stage.CHECK, outcome=Outcome.PASS), build),
        outcome=Outcome.FAIL if red else Outcome.PASS,
        trust="runner",
        started=datetime(2026, 1, 1 + age, tzinfo=UTC).isoformat(),
    )


if __name__ == "__main__":
    measure(Path(sys.argv[1])) if len(sys.argv) > 1 else main()

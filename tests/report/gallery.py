"""Record sets that the page is looked at with and tested on: few lanes and many, calm and hostile.

python -m tests.report.gallery DIR    writes pages with 1, 30 and 1,000 lanes
"""

from __future__ import annotations

import hashlib
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from greenlane.ledger import Ledger
from greenlane.matrix import load
from greenlane.matrix.model import Evidence, Lane, Stage
from greenlane.record.model import (
    Device,
    Digests,
    Finding,
    FirstError,
    Outcome,
    Record,
    Related,
    StageResult,
    Suggestion,
    Toolchain,
)
from greenlane.report import page
from greenlane.report.page.source import of_records
from greenlane.report.templates import Templates

HOSTILE = (
    "</script></pre><script>window.owned=1</script><img src=x onerror=window.owned=1>"
    "\"'`&<b onmouseover=window.owned=1>{{ 7 * 7 }}{% include 'x' %}javascript:window.owned=1"
)
START = datetime(2026, 3, 1, tzinfo=UTC)
STAGES = (Stage.CHECK, Stage.IMAGE, Stage.CONFIGURE, Stage.BUILD, Stage.TEST, Stage.REACH, Stage.EXACT, Stage.BENCH)
PROVES = {
    Stage.CHECK: Evidence.CHECKED,
    Stage.BUILD: Evidence.BUILT,
    Stage.TEST: Evidence.TESTED,
    Stage.REACH: Evidence.REACHED,
    Stage.EXACT: Evidence.EXACT,
    Stage.BENCH: Evidence.BENCHED,
}
SECONDS = dict(zip(STAGES, (1.5, 18.6, 2.1, 59.8, 45.5, 3.2, 94.3, 20.2), strict=True))
MEDIANS = {"decode": 291.2, "prefill": 1868.0, "memory": 201.3e6}
ERRORS = (
    "error: too few arguments to function call, expected 12, have 9",
    "cuda_fp16.h: No such file or directory",
    "error: 'launch_combine' defined but not used [-Werror=unused-function]",
    "AssertionError: 'capital' diverges at index 17: token 3575 against token 28",
)


def matrix_text(backends: dict[str, tuple[list[str], list[str]]]) -> str:
    """A matrix of backends, each with its architectures and variants."""
    lines = ["stages: {build: [make]}", "defaults: {require: [checked, built]}", "backends:"]
    products = []
    for name, (archs, variants) in backends.items():
        lines.append(f"  {name}:\n    row: BACKEND-{name.upper()}\n    compiler: gcc")
        if archs:
            lines.append("    archs: {" + ", ".join(f"{arch}: {{}}" for arch in archs) + "}")
        if variants:
            lines.append("    variants:")
            lines += [f"      {variant}: {{defines: {{V: '{variant}'}}}}" for variant in variants]
        arch = f", arch: [{', '.join(archs)}]" if archs else ""
        variant = f", variant: [null, {', '.join(variants)}]" if variants else ""
        products.append(f"    - {{backend: {name}{arch}{variant}}}")
    return "\n".join([*lines, "lanes:", "  products:", *products, ""])


SMALL = {"cpu": ([], [])}
MIDDLE = {
    "cpu": ([], ["clang", "newest-gcc", "sanitize", "asan"]),
    "cuda": (["sm_80", "sm_90", "sm_100"], ["debug", "fat"]),
    "rocm": (["gfx1100", "gfx1151", "gfx1201", "gfx942"], ["debug", "emulated", "wave32"]),
}
LARGE = {
    "cpu": ([], [f"flags-{number}" for number in range(199)]),
    "cuda": (["sm_80", "sm_90", "sm_100", "sm_120"], [f"v{number}" for number in range(79)]),
    "rocm": (["gfx1100", "gfx1151", "gfx1201", "gfx942", "gfx950", "gfx90a"], [f"v{number}" for number in range(79)]),
}


def bench(seed: int, age: int, *, judged: bool) -> dict[str, Any]:
    chance = random.Random(seed + 1000 * age)
    arms = ("head", "base", "control") if judged else ("head",)
    ratio = {"head": 1.034, "base": 1.0, "control": 1.002}
    samples = [
        {
            "arm": arm,
            "values": {
                "decode": 291 * ratio[arm] * (1 + chance.gauss(0, 0.006)),
                "prefill": 1868 * (1 + chance.gauss(0, 0.01)),
                "memory": 201e6 * (1 + chance.gauss(0, 0.001)),
            },
            "seconds": 1.2,
        }
        for _ in range(12)
        for arm in arms
    ]
    units = {"decode": "tokens/s", "prefill": "tokens/s", "memory": "bytes"}
    effects = {"decode": ("win", 0.032, 0.024, 0.041), "prefill": ("undecided", -0.004, -0.016, 0.009),
               "memory": ("wash", 0.0005, -0.001, 0.002)}  # fmt: skip
    metrics: dict[str, Any] = {}
    for name, (verdict, effect, low, high) in effects.items():
        metrics[name] = {"unit": units[name], "median": MEDIANS[name] * (1 + chance.gauss(0, 0.01))}
        if judged:
            metrics[name] |= {"verdict": verdict, "effect": effect, "interval": [low, high], "margin": 0.01}
            metrics[name] |= {"smallest_visible_effect": 0.018, "pairs": 12}
    return {"metrics": metrics, "samples": samples, "judged": judged}


def exact(*, parts: bool) -> dict[str, Any]:
    strict = {"name": "reference", "left": "reference", "right": "golden", "policy": "strict", "outcome": "pass",
              "equal_positions": 608, "positions": 608, "divergences": []}  # fmt: skip
    near = strict | {
        "name": "fast",
        "left": "fast",
        "policy": "near_tie",
        "equal_positions": 571,
        "largest_gap_nats": 0.3651,
        "divergences": [
            {"prompt": "capital", "index": 17, "left": 3575, "right": 28, "context": [504, 253, 1789],
             "left_margin": 0.0213, "right_margin": 0.0341, "oracle_gap_nats": 0.0,
             "gaps": [{"index": 17, "gap_nats": 0.0278}]},
            {"prompt": "story", "index": 2, "left": 905, "right": None, "context": [1, 42],
             "left_margin": 0.3651, "right_margin": None, "oracle_gap_nats": 0.3651, "gaps": []},
        ],
    }  # fmt: skip
    return {"comparisons": [strict, near] if parts else [strict]}


REACH = {
    "on": {"launches": {"combine": 512, "scatter_last_sampled": 512, "gather_counts": 1024}},
    "off": {"launches": {"combine": 0, "scatter_last_sampled": 0, "gather_counts": 1024}},
}


def finding(lane: str, message: str = "called with 12 arguments, defined with 9 parameters") -> Finding:
    return Finding(
        rule="call-arity",
        severity="error",
        file="src/vt/rocm/launchers.cpp",
        line=128,
        column=3,
        lanes=(lane,),
        message=message,
        related=(Related(file="src/dispatch.cpp", line=41, message="called here"),),
        suggestion=Suggestion(text="give the definition the three missing parameters"),
    )


def measured(stage: Stage, seed: int, age: int, rich: bool) -> dict[str, Any]:
    if not rich:
        return {}
    found = {Stage.EXACT: exact(parts=True), Stage.REACH: REACH, Stage.BENCH: bench(seed, age, judged=seed % 2 == 0)}
    return found.get(stage, {})


def record(lane: Lane, seed: int, *, red: Stage | None, rich: bool, age: int = 0, error: str | None = None) -> Record:
    stages: list[StageResult] = []
    for stage in STAGES:
        if red is not None and any(done.outcome.is_red for done in stages):
            stages.append(StageResult(stage=stage, outcome=Outcome.BLOCKED, reason=f"{red} is red"))
            continue
        first = None
        if stage is red:
            message = error or ERRORS[seed % len(ERRORS)]
            raw = f"launchers.cpp:128:3: {message}\n  128 |   launch_combine(stream, ids,\n      |   ^~~~~~~~~~~~~~\n"
            first = FirstError(
                message=message, fingerprint=f"f{seed % 4}", file="src/vt/rocm/launchers.cpp", line=128, raw=raw
            )
        stages.append(
            StageResult(
                stage=stage,
                outcome=Outcome.FAIL if stage is red else Outcome.WASH if stage is Stage.BENCH else Outcome.PASS,
                duration_s=SECONDS[stage] * (1 + 0.1 * (seed % 7)),
                first_error=first,
                measurements={} if stage is red else measured(stage, seed, age, rich),
            )
        )
    passed = tuple(PROVES[stage.stage] for stage in stages if stage.outcome.is_green and stage.stage in PROVES)
    return Record(
        schema=1,
        lane=lane.id,
        head=hashlib.sha1(f"commit {age}".encode()).hexdigest(),
        dirty=seed % 11 == 3,
        digests=Digests(matrix="a" * 64, lane=lane.digest, tree="b" * 64, image="sha256:" + "c" * 64, model="d" * 64),
        toolchain=Toolchain(compiler="hipcc", version="22.1.0", toolkit="7.0", archs=("gfx1100",)),
        device=Device(name="Radeon RX 7900 XTX", arch="gfx1100", driver="6.12", executor="docker", host={"cores": "8"}),
        evidence=passed,
        stages=tuple(stages),
        findings=(finding(lane.id), finding(lane.id, "a second finding")) if red is Stage.BUILD else (),
        outcome=Outcome.FAIL if red else Outcome.PASS,
        started=(START + timedelta(days=30 - age, minutes=seed)).isoformat(),
        duration_s=sum(stage.duration_s for stage in stages),
        require=(Evidence.CHECKED, Evidence.BUILT),
    )  # fmt: skip


def filled(folder: Path, backends: dict[str, tuple[list[str], list[str]]], *, history: int = 8, every: int = 6) -> Path:
    """A project with records: every so many lanes one is red, some have never run."""
    folder.mkdir(parents=True, exist_ok=True)
    matrix = folder / "matrix.yaml"
    matrix.write_text(matrix_text(backends))
    ledger = Ledger(folder / ".greenlane" / "ledger")
    for seed, lane in enumerate(load(matrix).lanes):
        if seed % 13 == 9:
            continue
        red = (Stage.BUILD, Stage.EXACT)[seed // every % 2] if seed % every == every - 1 else None
        for age in range(history, -1, -1):
            then_red = red if age == 0 else Stage.TEST if (seed + age) % 9 == 0 else None
            ledger.put(record(lane, seed, red=then_red, rich=seed % 5 == 0, age=age))
    return matrix


def page_of(matrix: Path) -> str:
    made = of_records(Ledger(matrix.parent / ".greenlane" / "ledger"), load(matrix), matrix.parent.name)
    return page.render(made, Templates())


if __name__ == "__main__":
    target = Path(sys.argv[1])
    for name, backends in (("one", SMALL), ("thirty", MIDDLE), ("thousand", LARGE)):
        project = target / name / "engine"
        made = project / "matrix.yaml"
        if not made.exists():
            made = filled(project, backends, history=1 if name == "thousand" else 8)
        (target / f"{name}.html").write_text(page_of(made))

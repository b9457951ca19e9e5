"""The bench gate end to end on a program that prints what the test wants, with a clock and a host of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenlane.gates import bench, host
from greenlane.gates.contract import GateContext, Ran
from greenlane.gates.host import Reading
from greenlane.matrix.gates import BenchConfig
from greenlane.record.model import Outcome, StageResult

CONFIG: dict[str, Any] = {
    "command": "bench --json {options}",
    "metrics": {
        "decode": {"path": "decode.0", "direction": "higher", "margin": "1%", "unit": "tokens/s"},
        "latency": {"path": "p99_ms", "direction": "lower", "margin": 0.02},
    },
    "warmup": 1,
}
QUIET = Reading(busy_before=0.0, steal=0.0, mhz=3000.0, throttled=4)


@dataclass
class Bencher:
    """Prints speed and latency with 0.5 % noise; the effect is what this build adds to both."""

    effect: float = 0.0
    seed: int = 1
    change: Callable[[dict[str, Any]], object] | None = None
    ran: Ran | None = None
    commands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def __call__(self, command: str, **how: Any) -> Ran:
        self.commands.append(command)
        if self.ran is not None:
            return self.ran
        factor = (1 + self.effect) * (1 + self.rng.normal(0, 0.005))
        document = {"decode": [100 * factor], "p99_ms": 20 / factor}
        if self.change is not None:
            self.change(document)
        return Ran(0, json.dumps(document), "")


@dataclass
class Host:
    readings: list[Reading] = field(default_factory=list)  # of the first runs; quiet after that

    def before(self) -> None: ...

    def after(self) -> Reading:
        return self.readings.pop(0) if self.readings else QUIET


def measure(
    context: GateContext, head: Bencher, base: Bencher | None, watch: Host | None = None, **settings: Any
) -> StageResult:
    about = replace(context, base=(lambda: base) if base is not None else None)
    return bench.run(CONFIG | settings, head, about, watch=watch or Host())


def test_a_slower_head_is_a_loss_with_interval_and_smallest_visible_effect(context: GateContext) -> None:
    result = measure(context, Bencher(-0.05), Bencher(0.0, seed=2))
    assert result.outcome is Outcome.LOSS
    metric = result.measurements["metrics"]["decode"]
    assert metric["interval"][0] < -0.05 < metric["interval"][1] < -0.01
    assert 0.01 < metric["smallest_visible_effect"] < 0.05
    assert metric["medians"]["base"] == pytest.approx(100, rel=0.01)
    assert result.first_error is not None


def test_a_faster_head_is_a_win(context: GateContext) -> None:
    assert measure(context, Bencher(0.05), Bencher(0.0, seed=2)).outcome is Outcome.WIN


def test_the_same_build_is_a_wash(context: GateContext) -> None:
    result = measure(context, Bencher(), Bencher(0.0, seed=2))
    assert result.outcome is Outcome.WASH
    assert all(metric["verdict"] == Outcome.WASH for metric in result.measurements["metrics"].values())


def test_runs_are_interleaved_so_that_a_drift_cancels(context: GateContext) -> None:
    order = [sample["arm"] for sample in measure(context, Bencher(), Bencher()).measurements["samples"]]
    assert order[:12] == "head base control control base head control base head head base control".split()


def test_warm_up_is_discarded_and_every_sample_is_kept_raw(context: GateContext) -> None:
    head, base = Bencher(-0.05), Bencher(0.0, seed=2)
    result = measure(context, head, base, warmup=2)
    samples = result.measurements["samples"]
    assert len(head.commands) + len(base.commands) == len(samples) + 3 * 2
    assert all(set(sample["values"]) == {"decode", "latency"} and sample["seconds"] >= 0 for sample in samples)


def test_it_stops_as_soon_as_the_rule_has_decided(context: GateContext) -> None:
    result = measure(context, Bencher(-0.2), Bencher(0.0, seed=2))
    assert result.measurements["metrics"]["decode"]["pairs"] == 6


def test_a_used_up_budget_ends_undecided(context: GateContext) -> None:
    now = iter(range(0, 100_000, 100))
    about = replace(context, base=lambda: Bencher(0.0, seed=2))
    settings = CONFIG | {"budget_s": 800}
    result = bench.run(settings, Bencher(-0.011), about, watch=Host(), clock=lambda: float(next(now)))
    assert result.outcome is Outcome.UNDECIDED
    assert 4 <= result.measurements["metrics"]["decode"]["pairs"] < 30


def test_undecided_is_void_where_a_verdict_is_required(context: GateContext) -> None:
    result = measure(context, Bencher(-0.011), Bencher(0.0, seed=2), max_pairs=6, required=True)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and "not measured" in result.reason


def test_without_a_base_figures_are_recorded_and_nothing_is_judged(context: GateContext) -> None:
    result = measure(context, Bencher(), None, figures=4)
    assert result.outcome is Outcome.PASS and result.measurements["judged"] is False
    assert len(result.measurements["samples"]) == 4
    assert result.measurements["metrics"]["decode"]["median"] == pytest.approx(100, rel=0.02)


def test_two_ways_to_run_one_build_are_compared_without_a_base(context: GateContext) -> None:
    class Switch(Bencher):
        def __call__(self, command: str, **how: Any) -> Ran:
            self.effect = 0.05 if "--mirror on" in command else 0.0
            return super().__call__(command, **how)

    result = measure(context, Switch(), None, arms=[{"options": "--mirror on"}, {"options": "--mirror off"}])
    assert result.outcome is Outcome.WIN


SERVED = {"commands": {"server": "bench-serve --json {options}"}, "options": "--batch 1"}


def test_a_metric_may_come_of_a_further_command(context: GateContext) -> None:
    served = {"path": "ms", "direction": "lower", "of": "server"}
    plain = served | {"of": None}

    def told(document: dict[str, Any]) -> None:
        document["ms"] = 250 if head.commands[-1].startswith("bench-serve") else 4

    head = Bencher(change=told)
    metrics = {"plain": plain, "served": served}
    result = measure(context, head, None, metrics=metrics, figures=2, **SERVED)
    assert {name: one["median"] for name, one in result.measurements["metrics"].items()} == {"plain": 4, "served": 250}
    assert head.commands == ["bench --json --batch 1", "bench-serve --json --batch 1"] * 3


def test_the_plain_command_is_not_run_for_nothing(context: GateContext) -> None:
    head = Bencher()
    metrics = {"decode": CONFIG["metrics"]["decode"] | {"of": "server"}}
    measure(context, head, None, metrics=metrics, **SERVED)
    assert set(head.commands) == {"bench-serve --json --batch 1"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"commands": {"server": "x"}}, "no metric is `of` it"),
        (
            {"metrics": {"a": {"path": "a", "direction": "lower", "of": "server"}}},
            "no command 'server'; there are none",
        ),
    ],
)
def test_a_command_and_its_metrics_belong_together(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        BenchConfig.model_validate(CONFIG | settings)


def test_a_base_that_differs_from_itself_is_a_noisy_host(context: GateContext) -> None:
    class Moody(Bencher):
        """Every second and third run of a block of base runs is slow: base, control, control, base."""

        def __call__(self, command: str, **how: Any) -> Ran:
            self.effect = -0.1 if len(self.commands) >= 2 and (len(self.commands) - 2) % 8 in (1, 2, 4, 7) else 0.0
            return super().__call__(command, **how)

    result = measure(context, Bencher(), Moody(0.0, seed=2))
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and "differs from itself" in result.reason
    assert result.measurements["samples"]


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        (replace(QUIET, busy_before=0.6), "other processes used 0.60 cores"),
        (replace(QUIET, steal=0.2), "the hypervisor took 20%"),
        (replace(QUIET, throttled=5), "throttled 1 times"),
        (replace(QUIET, mhz=2000.0), "moved between 2000 and 3000 MHz"),
        (replace(QUIET, gpu_others=2), "2 other processes hold the card"),
        (replace(QUIET, gpu_faults=("hw_slowdown",)), "held down by hw_slowdown"),
    ],
)
def test_a_disturbed_host_makes_the_run_void(reading: Reading, reason: str, context: GateContext) -> None:
    watch = Host([QUIET, QUIET, QUIET, QUIET, reading])
    result = measure(context, Bencher(), Bencher(), watch)
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and reason in result.reason


def test_arms_at_different_clocks_are_void(context: GateContext) -> None:
    slow = replace(QUIET, mhz=2850.0)
    blocks = [QUIET, slow, slow, slow, slow, QUIET, slow, slow, QUIET, QUIET, slow, slow]
    watch = Host([QUIET, QUIET, QUIET, *blocks])  # one warm-up run of each arm comes first
    result = measure(context, Bencher(), Bencher(), watch)
    assert result.reason is not None and "ran at different clocks: head 3000 MHz" in result.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(p99_ms=float("nan")), "'latency' is nan"),
        (lambda d: d.update(p99_ms=0), "not a positive number"),
        (lambda d: d.update(p99_ms=True), "not a positive number"),
        (lambda d: d.update(p99_ms="fast"), "not a positive number"),
        (lambda d: d.pop("p99_ms"), "its keys are decode"),
        (lambda d: d.update(decode=[]), "no 'decode.0'"),
    ],
)
def test_a_metric_that_is_no_number_is_void(change: Any, reason: str, context: GateContext) -> None:
    result = measure(context, Bencher(change=change), Bencher())
    assert result.outcome is Outcome.VOID
    assert result.reason is not None and reason in result.reason


@pytest.mark.parametrize(
    ("ran", "reason"),
    [
        (Ran(2, "", "engine: no model"), "exit code 2: engine: no model"),
        (Ran(-9, "", "", timed_out=True), "did not end within"),
    ],
)
def test_a_crashing_head_is_red_and_a_crashing_base_is_not_measured(
    ran: Ran, reason: str, context: GateContext
) -> None:
    for head, base, outcome in ((ran, None, Outcome.FAIL), (None, ran, Outcome.VOID)):
        result = measure(context, Bencher(ran=head), Bencher(ran=base))
        assert result.outcome is outcome
        assert result.reason is not None and reason in result.reason


def test_a_bench_that_prints_text_is_void(context: GateContext) -> None:
    assert measure(context, Bencher(ran=Ran(0, "42 tokens/s\n", "")), Bencher()).outcome is Outcome.VOID


def test_an_emulated_lane_is_never_measured(context: GateContext) -> None:
    head = Bencher()
    assert measure(replace(context, emulated=True), head, Bencher()).outcome is Outcome.NOT_RUN
    assert not head.commands


def test_a_result_can_be_written_into_a_record(context: GateContext) -> None:
    result = measure(context, Bencher(-0.05), Bencher(0.0, seed=2))
    assert json.loads(result.model_dump_json())["measurements"]["metrics"]["decode"]["verdict"] == "loss"


def test_this_host_can_be_watched(tmp_path: Path) -> None:
    watch = host.HostWatch(listen_s=0.01)
    watch.before()
    reading = watch.after()
    assert reading.busy_before >= 0 and 0 <= reading.steal <= 1


def test_clocks_and_throttling_are_read_from_sysfs(tmp_path: Path) -> None:
    for core, clock, events in ((0, 2_900_000, 3), (1, 3_100_000, 0)):
        for path, value in (("cpufreq/scaling_cur_freq", clock), ("thermal_throttle/core_throttle_count", events)):
            file = tmp_path / f"cpu{core}" / path
            file.parent.mkdir(parents=True)
            file.write_text(f"{value}\n")
    assert host.fastest_core(tmp_path) == 3100
    assert host.throttle_events(tmp_path) == 3
    assert host.fastest_core(tmp_path / "nothing") is None


def test_margins_may_be_written_as_percentages() -> None:
    assert BenchConfig.model_validate(CONFIG).metrics["decode"].margin == 0.01

"""The bench gate: head and base interleaved on one host, judged by pairs; without a base it only records figures."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from greenlane.gates import commands, generation, host, rule
from greenlane.gates.commands import Failed, filled
from greenlane.gates.contract import GateContext, Program, Ran
from greenlane.gates.generation import Unusable
from greenlane.gates.host import HostWatch, Reading, Watch
from greenlane.gates.result import ended
from greenlane.gates.rule import Rule
from greenlane.matrix.gates import BenchConfig, Metric, ReachArm
from greenlane.record.model import Outcome, StageResult

BLOCK = ("head", "base", "control", "control", "base", "head")  # reads the same backwards: a drift cancels
AGAIN = ("control", "base", "head", "head", "base", "control")
PAIRS = 2  # of each block


def run(
    config: Mapping[str, Any],
    program: Program,
    context: GateContext,
    *,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> StageResult:
    settings = BenchConfig.model_validate(config)
    watch = watch or HostWatch(context.lane.device)
    if context.emulated:
        return ended(context.stage, Outcome.NOT_RUN, "an emulator's speed says nothing about a device", {})
    try:
        if settings.arms is None and context.base is None:
            return figures(settings, program, context, watch)
        return Series(settings, arms(settings, program, context), context, watch, clock).run()
    except Failed as failure:
        return ended(context.stage, failure.outcome, failure.reason, {}, failure.tail)


@dataclass(frozen=True)
class Arm:
    """One side: `control` is the base once more under another name."""

    name: str
    program: Program
    options: str
    env: Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    arm: str
    values: Mapping[str, float]
    seconds: float
    reading: Reading

    def to_json(self) -> dict[str, Any]:
        seconds = round(self.seconds, 3)
        return {"arm": self.arm, "values": dict(self.values), "seconds": seconds, "host": host.to_json(self.reading)}


def arms(settings: BenchConfig, program: Program, context: GateContext) -> dict[str, Arm]:
    if settings.arms is not None:
        head, base = (variant(settings, which) for which in settings.arms)
        programs = program, program
    else:
        assert context.base is not None
        head = base = variant(settings, ReachArm())
        programs = program, context.base()
    return {
        "head": Arm("head", programs[0], *head),
        "base": Arm("base", programs[1], *base),
        "control": Arm("control", programs[1], *base),
    }


def variant(settings: BenchConfig, arm: ReachArm) -> tuple[str, dict[str, str]]:
    return f"{settings.options} {arm.options}".strip(), {**settings.env, **arm.env}


def sample(settings: BenchConfig, arm: Arm, watch: Watch) -> Sample:
    """Every command once; each prints some of the metrics."""
    watch.before()
    started = time.monotonic()
    asked = {
        metric.of: settings.commands.get(metric.of or "", settings.command) for metric in settings.metrics.values()
    }
    ran = {name: ran_once(settings, arm, name, command) for name, command in asked.items()}
    seconds = time.monotonic() - started
    reading = watch.after()
    values = {name: read(ran[metric.of], arm, name, metric) for name, metric in settings.metrics.items()}
    return Sample(arm.name, values, seconds, reading)


def ran_once(settings: BenchConfig, arm: Arm, name: str | None, command: str) -> Ran:
    told = f"bench of {arm.name}" if name is None else f"bench {name} of {arm.name}"
    try:
        line = filled(command, {"options": arm.options})
        return commands.run(arm.program, line, told, env=arm.env, timeout_s=settings.timeout_s)
    except Failed as failure:
        broken = Outcome.FAIL if arm.name == "head" else Outcome.VOID
        raise Failed(broken, failure.reason, failure.tail) from None


def read(ran: Ran, arm: Arm, name: str, metric: Metric) -> float:
    try:
        return number(generation.document_in(ran.stdout), name, metric)
    except Unusable as error:
        raise Failed(Outcome.VOID, f"bench of {arm.name}: {error}", commands.tail(ran)) from None


def number(document: Any, name: str, metric: Metric) -> float:
    """The metric at its dotted path; a list is entered by position."""
    value = document
    for step in metric.path.split("."):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Unusable(f"its JSON has no {metric.path!r} for metric {name!r}; {known(document)}") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        said = json.dumps(value)[:40] if not isinstance(value, float) else str(value)
        raise Unusable(f"metric {name!r} is {said}, not a positive number")
    return float(value)


def known(document: Any) -> str:
    keys = sorted(document) if isinstance(document, dict) else []
    return f"its keys are {', '.join(keys[:20])}" if keys else "it is no object"


def figures(settings: BenchConfig, program: Program, context: GateContext, watch: Watch) -> StageResult:
    arm = Arm("head", program, settings.options, settings.env)
    for _ in range(settings.warmup):
        sample(settings, arm, watch)
    taken = [sample(settings, arm, watch) for _ in range(settings.figures)]
    metrics = {name: described(name, metric, taken) for name, metric in settings.metrics.items()}
    for name, about in metrics.items():
        context.log(f"bench: {name}: {about['median']:.6g} {about['unit']}")
    measured = {"metrics": metrics, "samples": [one.to_json() for one in taken], "judged": False}
    notes = sorted({why for one in taken if (why := host.disturbance(one.reading)) is not None})
    return ended(context.stage, Outcome.PASS, "figures only: no base to judge against", measured | {"notes": notes})


def described(name: str, metric: Metric, taken: Sequence[Sample]) -> dict[str, Any]:
    values = [one.values[name] for one in taken]
    middle = statistics.median(values)
    spread = (max(values) - min(values)) / middle
    return {"median": middle, "spread": spread, "unit": metric.unit, "direction": metric.direction}


@dataclass
class Series:
    """Blocks of head, base and control, until the rule has decided or the budget is used up."""

    settings: BenchConfig
    arms: dict[str, Arm]
    context: GateContext
    watch: Watch
    clock: Callable[[], float]
    samples: list[Sample] = field(default_factory=list)
    blocks: list[dict[str, list[Sample]]] = field(default_factory=list)

    def run(self) -> StageResult:
        started = self.clock()
        margins = tuple(math.log1p(metric.margin) for metric in self.settings.metrics.values())
        looks = rule.looks(self.settings.min_pairs, self.settings.max_pairs)
        judges = {arm: Rule(margins, self.settings.error_rate, looks[-1]) for arm in ("head", "control")}
        for arm in self.arms.values():
            for _ in range(self.settings.warmup):
                sample(self.settings, arm, self.watch)
        try:
            while not judges["head"].finished().all() and self.pairs < looks[-1]:
                self.block()
                last = self.pairs >= self.settings.min_pairs and self.out_of_time(started)
                if self.pairs in looks or last:
                    self.judge(judges, last=last or self.pairs == looks[-1])
                if last:
                    break
        except Failed as failure:
            return ended(self.context.stage, failure.outcome, failure.reason, self.measured(judges), failure.tail)
        return self.verdict(judges)

    @property
    def pairs(self) -> int:
        return PAIRS * len(self.blocks)

    def out_of_time(self, started: float) -> bool:
        """Whether another block would go over the budget."""
        used = self.clock() - started
        return used + used / len(self.blocks) > self.settings.budget_s

    def block(self) -> None:
        taken: dict[str, list[Sample]] = {"head": [], "base": [], "control": []}
        for arm in AGAIN if len(self.blocks) % 2 else BLOCK:
            one = sample(self.settings, self.arms[arm], self.watch)
            self.samples.append(one)
            taken[arm].append(one)
            if why := host.disturbance(one.reading):
                raise Failed(Outcome.VOID, why)
        self.blocks.append(taken)
        self.context.log(f"bench: {self.pairs} pairs")
        by_arm = {arm: [one.reading for one in self.samples if one.arm == arm] for arm in taken}
        if why := host.unsteady(by_arm):
            raise Failed(Outcome.VOID, why)

    def differences(self, arm: str) -> rule.Floats:
        """(1, metrics, pairs) of the arm against the base, turned so that more is better."""
        rows = []
        for name, metric in self.settings.metrics.items():
            sign = 1 if metric.direction == "higher" else -1
            logs = [
                sign * math.log(mine.values[name] / its.values[name])
                for block in self.blocks
                for mine, its in zip(block[arm], block["base"], strict=True)
            ]
            rows.append(logs)
        return np.array([rows])

    def judge(self, judges: Mapping[str, Rule], *, last: bool) -> None:
        control = judges["control"].look(self.differences("control"), last=last)[0]
        for name, verdict in zip(self.settings.metrics, control, strict=True):
            if verdict in (rule.WIN, rule.LOSS):
                raise Failed(Outcome.VOID, f"noisy host: the base differs from itself in {name} beyond the margin")
        judges["head"].look(self.differences("head"), last=last)

    def verdict(self, judges: Mapping[str, Rule]) -> StageResult:
        overall = rule.OUTCOMES[judges["head"].overall()[0]]
        measured = self.measured(judges)
        if overall is Outcome.UNDECIDED and self.settings.required:
            reason = f"undecided after {self.pairs} pairs, and the matrix requires a verdict: not measured"
            return ended(self.context.stage, Outcome.VOID, reason, measured)
        told = next(
            (f"{name}: {said(about)}" for name, about in measured["metrics"].items() if about["verdict"] is overall),
            f"undecided after {self.pairs} pairs: min_pairs is {self.settings.min_pairs}",
        )
        return ended(self.context.stage, overall, told, measured)

    def measured(self, judges: Mapping[str, Rule]) -> dict[str, Any]:
        about: dict[str, Any] = {}
        if self.pairs >= 2:
            head, control = self.differences("head")[0], self.differences("control")[0]
            for at, (name, metric) in enumerate(self.settings.metrics.items()):
                about[name] = {
                    "verdict": rule.OUTCOMES[judges["head"].verdicts[0, at]],
                    "margin": metric.margin,
                    "unit": metric.unit,
                    "direction": metric.direction,
                    "medians": self.medians(name),
                    **self.interval(head[at], metric, judges["head"]),
                    "control": self.interval(control[at], metric, judges["control"]),
                }
        return {"metrics": about, "samples": [one.to_json() for one in self.samples], "judged": True}

    def interval(self, differences: rule.Floats, metric: Metric, judge: Rule) -> dict[str, Any]:
        return rule.described(differences, math.log1p(metric.margin), judge)

    def medians(self, name: str) -> dict[str, float]:
        return {arm: statistics.median(one.values[name] for one in self.samples if one.arm == arm) for arm in self.arms}


def said(part: Mapping[str, Any]) -> str:
    low, high = part["interval"]
    seen = part["smallest_visible_effect"]
    return f"{part['effect']:+.2%} [{low:+.2%}, {high:+.2%}] better over {part['pairs']} pairs, could see {seen:.2%}"

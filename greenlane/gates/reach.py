"""The reach gate: launch counters say whether a kernel ran where it must, and did not where it must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greenlane.gates import workload
from greenlane.gates.arms import Request, Runner
from greenlane.gates.commands import Failed
from greenlane.gates.contract import GateContext, Program
from greenlane.gates.result import ended
from greenlane.gates.witness import Watcher, by_counter
from greenlane.matrix.gates import Arm, ExactConfig, ReachArm, ReachConfig, Witness
from greenlane.record.model import Outcome, StageResult


def run(config: Mapping[str, Any], program: Program, context: GateContext) -> StageResult:
    settings = ReachConfig.model_validate(config)
    gate = Gate(settings, program, context, witness_of(settings, context))
    measured: dict[str, Any] = {}
    try:
        for name, arm in (("on", settings.on), ("off", settings.off)):
            if arm is not None:
                measured[name] = gate.counted(name, arm)
    except Failed as failure:
        return ended(context.stage, failure.outcome, failure.reason, measured, failure.tail)
    outcome, reason = judge(settings, measured)
    context.log(f"reach: {outcome}{': ' + reason if reason else ''}")
    return ended(context.stage, outcome, reason, measured)


def witness_of(settings: ReachConfig, context: GateContext) -> Witness | None:
    """In an emulated lane the emulator counts too, whether or not the matrix asks it."""
    if settings.witness is None and context.emulated:
        return Witness(kind="emulator")
    return settings.witness


@dataclass(frozen=True)
class Gate:
    settings: ReachConfig
    program: Program
    context: GateContext
    witness: Witness | None

    @property
    def counters(self) -> tuple[str, ...]:
        settings = self.settings
        return tuple(dict.fromkeys((*settings.must_reach, *settings.must_not_reach, *settings.watch)))

    def counted(self, name: str, arm: ReachArm) -> dict[str, Any]:
        """Launches in one arm: what the engine says, and what the witness says."""
        watcher = Watcher(self.witness, self.context.artifacts, f"reach-{name}") if self.witness else None
        engine = self.launches(name, arm, watcher)
        if watcher is None:
            return {"launches": chosen(engine, self.counters), "all": engine}
        seen = by_counter(watcher.total, self.counters, watcher.witness.names)
        if not watcher.witness.only:
            self.agree(name, engine, seen, watcher.witness.kind)
        return {"launches": seen, "witness": watcher.witness.kind, "all": engine}

    def launches(self, name: str, arm: ReachArm, watcher: Watcher | None) -> dict[str, int]:
        program = self.program if watcher is None else watcher.watching(self.program)
        runner = Runner(self.command(), self.settings.timeout_s, program, self.context)
        found = runner.run(f"reach {name}", Arm(options=arm.options, env=arm.env), self.request())
        if not found.counts_launches and not (watcher and watcher.witness.only):
            text = "the engine printed no kernel_launches; an engine without counters needs a witness with `only: true`"
            raise Failed(Outcome.VOID, text)
        return found.kernel_launches

    def agree(self, name: str, engine: Mapping[str, int], seen: Mapping[str, int], kind: str) -> None:
        for counter in self.counters:
            said, counted = engine.get(counter, 0), seen[counter]
            if said != counted:
                text = f"{name}: the engine says {counter} was launched {said} times, {kind} counted {counted}"
                raise Failed(Outcome.FAIL, text)

    def command(self) -> str:
        return self.settings.command or exact_of(self.context).generate

    def request(self) -> Request:
        chosen = self.settings.workload or next(iter(exact_of(self.context).workloads.values()))
        return Request("reach", chosen, workload.load(chosen, self.context.source))


def exact_of(context: GateContext) -> ExactConfig:
    return ExactConfig.model_validate(context.lane.gates["exact"])


def chosen(launches: Mapping[str, int], counters: tuple[str, ...]) -> dict[str, int]:
    return {counter: launches.get(counter, 0) for counter in counters}


def judge(settings: ReachConfig, measured: Mapping[str, Any]) -> tuple[Outcome, str | None]:
    on: Mapping[str, int] = measured["on"]["launches"]
    off: Mapping[str, int] | None = measured["off"]["launches"] if "off" in measured else None
    for counter in settings.must_reach:
        if on[counter] == 0:
            return Outcome.FAIL, f"{counter} must be reached and was never launched: dead code in this lane"
        if off is not None and off[counter] > 0:
            return Outcome.FAIL, f"{counter} was launched {off[counter]} times with the feature off"
    for counter in settings.must_not_reach:
        if on[counter] > 0:
            return Outcome.FAIL, f"{counter} must not be reached and was launched {on[counter]} times"
    if settings.watch and not any(on[counter] for counter in settings.watch):
        return Outcome.INERT, f"compiled, but no run reaches {', '.join(settings.watch)}"
    return Outcome.PASS, None

"""The exact gate: token ids of every compared arm, strict or within a near tie of an oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenlane.gates import anchors, compare, near_tie, workload
from greenlane.gates.adapters import adapter
from greenlane.gates.arms import Request, Runner, identity
from greenlane.gates.commands import Failed
from greenlane.gates.contract import GateContext, Program
from greenlane.gates.generation import Answer, Generation
from greenlane.gates.result import result
from greenlane.gates.teacher import Teacher
from greenlane.matrix.gates import Comparison, ExactConfig
from greenlane.record.model import Outcome, StageResult

Pairs = Sequence[tuple[Answer, Answer]]


def run(config: Mapping[str, Any], program: Program, context: GateContext) -> StageResult:
    gate = Gate(ExactConfig.model_validate(config), program, context)
    found = [gate.compare(name, comparison) for name, comparison in gate.config.compare.items()]
    return result(context.stage, found)


@dataclass
class Gate:
    config: ExactConfig
    program: Program
    context: GateContext
    generations: dict[tuple[str, str], Generation | Failed] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)

    def compare(self, name: str, comparison: Comparison) -> dict[str, Any]:
        """One comparison's part of the record; a failure of any kind becomes its outcome."""
        head = {"name": name, "left": comparison.left, "right": comparison.right, "policy": comparison.policy}
        try:
            measured = self.measure(name, comparison)
        except Failed as failure:
            return head | {"outcome": failure.outcome, "reason": failure.reason, "tail": failure.tail}
        return head | measured

    def measure(self, name: str, comparison: Comparison) -> dict[str, Any]:
        request = self.request(comparison.workload or next(iter(self.config.workloads)))
        left, right = (self.generation(arm, request) for arm in (comparison.left, comparison.right))
        names = comparison.left, comparison.right
        paired = compare.pairs(left, right, names)
        apart = compare.told_apart(left, right, comparison.moved, names) if self.same_program(comparison) else {}
        judge = self.strict if comparison.policy == "strict" else self.near_tie
        verdict = judge(request, comparison, paired, left, right)
        self.context.log(f"exact: {name}: {verdict['outcome']}, {verdict['equal_positions']} positions equal")
        return described(request, paired, left, right) | {"arms": apart} | verdict

    def request(self, name: str) -> Request:
        if name not in self.requests:
            chosen = self.config.workloads[name]
            self.requests[name] = Request(name, chosen, workload.load(chosen, self.context.source))
        return self.requests[name]

    def generation(self, arm: str, request: Request) -> Generation:
        """Each arm runs once per workload, also when it failed and more than one comparison wants it."""
        key = arm, request.workload_name
        if key not in self.generations:
            runner = Runner(self.config.generate, self.config.timeout_s, self.program, self.context)
            self.context.log(f"exact: running {arm}")
            try:
                self.generations[key] = runner.run(arm, self.config.arms[arm], request)
            except Failed as failure:
                self.generations[key] = failure
        found = self.generations[key]
        if isinstance(found, Failed):
            raise found
        return found

    def same_program(self, comparison: Comparison) -> bool:
        arms = [self.config.arms[name] for name in (comparison.left, comparison.right)]
        return not any(arm.golden or arm.oracle or arm.base for arm in arms)

    def strict(
        self, request: Request, comparison: Comparison, paired: Pairs, left: Generation, right: Generation
    ) -> dict[str, Any]:
        found = [where for a, b in paired if (where := compare.divergence(a, b)) is not None]
        verdict: dict[str, Any] = {
            "outcome": Outcome.FAIL if found else Outcome.PASS,
            "equal_positions": equal_positions(paired),
            "divergences": [where.to_json() for where in found],
        }
        return verdict | ({"reason": str(found[0])} if found else {})

    def near_tie(
        self, request: Request, comparison: Comparison, paired: Pairs, left: Generation, right: Generation
    ) -> dict[str, Any]:
        problems: list[str] = []
        anchor = self.anchor(comparison, left, right) if comparison.anchors else None
        if anchor is not None:
            problems += near_tie.drift(left.requests, request.limits, anchor)
        teacher = self.teacher()
        results = near_tie.judge(paired, teacher, comparison.margin_nats)
        problems += [problem for judged in results for problem in judged.problems]
        if anchor is not None:
            same = anchor.teacher == anchors.digest(teacher.command)
            problems += near_tie.against_recorded(results, anchor, comparison.margin_nats, same)
        verdict: dict[str, Any] = {
            "outcome": Outcome.FAIL if problems else Outcome.PASS,
            "equal_positions": equal_positions(paired),
            "strictly_equal": len(paired) - len(results),
            "margin_nats": comparison.margin_nats,
            "largest_gap_nats": max((judged.largest for judged in results), default=0.0),
            "divergences": [
                judged.divergence.to_json()
                | {"oracle_gap_nats": judged.oracle_gap, "gaps": [gap.model_dump() for gap in judged.gaps]}
                for judged in results
            ],
            "anchored": anchor is not None,
        }
        return verdict | ({"reason": problems[0], "problems": problems} if problems else {})

    def teacher(self) -> Teacher:
        command = self.config.score
        if command is None:
            assert self.config.teacher is not None  # the matrix was refused otherwise
            oracle = self.config.teacher
            command = oracle.command or f"{adapter(oracle, self.context)} {{pairs}}"
        return Teacher(command, self.program, self.config.timeout_s)

    def anchor(self, comparison: Comparison, left: Generation, right: Generation) -> anchors.Anchor:
        assert comparison.anchors is not None
        oracle = anchors.oracle_of(right, comparison.right)
        arm = arm_key(self.config, comparison.left)
        file = anchors.path(self.context.source / comparison.anchors, left.device_key, oracle, comparison.left)
        return anchors.load(file, left.device_key, oracle, arm)


def arm_key(config: ExactConfig, name: str) -> str:
    return f"{name} {config.arms[name].options}".strip()


def equal_positions(paired: Pairs) -> int:
    """Positions at which both arms hold the same token, counted up to where they part."""
    ends = (compare.first_difference(a.token_ids, b.token_ids) for a, b in paired)
    return sum(len(a.token_ids) if end is None else end for end, (a, _) in zip(ends, paired, strict=True))


def described(request: Request, paired: Pairs, left: Generation, right: Generation) -> dict[str, Any]:
    margins = [m for a, _ in paired for i in range(len(a.token_ids)) if (m := a.margin(i)) is not None]
    return {
        "workload": request.workload_name,
        "prompts": len(paired),
        "positions": compare.positions(paired),
        "smallest_margin_nats": min(margins) if margins else None,
        "device": left.device_key,
        "oracle": identity(right),
        "digests": {a.name: {"left": a.digest, "right": b.digest} for a, b in paired},
    }

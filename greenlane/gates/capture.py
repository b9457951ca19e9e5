"""Captures a device's anchors: its own ids and every gap to the oracle, for a reviewer to read as a diff."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from greenlane.gates import anchors, compare, near_tie
from greenlane.gates.anchors import Anchor, Anchored
from greenlane.gates.commands import Failed
from greenlane.gates.contract import GateContext, Program
from greenlane.gates.exact import Gate, arm_key
from greenlane.gates.generation import Answer
from greenlane.gates.near_tie import Judged
from greenlane.matrix.gates import Comparison, ExactConfig
from greenlane.record.model import Outcome


def capture(
    config: Mapping[str, Any], program: Program, context: GateContext, *, head: str, today: str
) -> tuple[Path, ...]:
    """Writes one file per comparison that names anchors, all or none; `Failed` says why there is none."""
    gate = Gate(ExactConfig.model_validate(config), program, context)
    wanted = [comparison for comparison in gate.config.compare.values() if comparison.anchors]
    if not wanted:
        raise Failed(Outcome.VOID, "no comparison of this lane names `anchors`: there is nothing to capture")
    captured = [anchor_of(gate, comparison, head, today) for comparison in wanted]
    for file, anchor in captured:
        replace(file, anchor.dumps())
    return tuple(file for file, _ in captured)


def anchor_of(gate: Gate, comparison: Comparison, head: str, today: str) -> tuple[Path, Anchor]:
    config = gate.config
    assert comparison.anchors is not None
    request = gate.request(comparison.workload or next(iter(config.workloads)))
    left, right = (gate.generation(arm, request) for arm in (comparison.left, comparison.right))
    paired = compare.pairs(left, right, (comparison.left, comparison.right))
    teacher = gate.teacher()
    results = near_tie.judge(paired, teacher, comparison.margin_nats)
    if problems := [problem for judged in results for problem in judged.problems]:
        raise Failed(Outcome.FAIL, f"{problems[0]}; that is an error, not an anchor")
    oracle = anchors.oracle_of(right, comparison.right)
    file = anchors.path(gate.context.source / comparison.anchors, left.device_key, oracle, comparison.left)
    by_prompt = {judged.divergence.prompt: judged for judged in results}
    anchor = Anchor(
        device=left.device_key,
        oracle=oracle,
        arm=arm_key(config, comparison.left),
        teacher=anchors.digest(teacher.command),
        head=head,
        captured=today,
        requests=tuple(anchored(a, b, by_prompt.get(a.name or "")) for a, b in paired),
    )
    return file, anchor


def anchored(answer: Answer, oracle: Answer, judged: Judged | None) -> Anchored:
    prompt = answer.prompt_token_ids or oracle.prompt_token_ids
    if prompt is None:
        raise Failed(Outcome.VOID, f"{answer.name!r}: neither arm printed prompt_token_ids; an anchor needs them")
    gaps = judged.gaps if judged else ()
    return Anchored(name=answer.name or "", prompt_token_ids=prompt, token_ids=answer.token_ids, gaps=gaps)


def replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.with_suffix(".new")
    whole.write_text(text, encoding="utf-8")
    whole.replace(file)

"""Proving a gate: what it guards is taken away, and the gate has to notice. A gate that stays green guards nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from greenlane.gates.commands import Failed
from greenlane.matrix.gates import GatesConfig, Proof
from greenlane.matrix.model import Lane, Stage
from greenlane.record.git import git
from greenlane.record.model import Outcome, StageResult

PROVABLE = (Stage.REACH, Stage.EXACT)


def proof_of(lane: Lane, gate: Stage) -> Proof | None:
    """What the matrix says to take away, for this lane's gate."""
    gates = GatesConfig.model_validate(dict(lane.gates))
    section = gates.reach if gate is Stage.REACH else gates.exact if gate is Stage.EXACT else None
    return None if section is None else section.prove


def broken_lane(proof: Proof, lane: Lane, gate: Stage) -> Lane:
    """The lane with what the proof turns off, and without other stages that might notice before the gate can."""
    defines, env = {**lane.defines, **proof.defines}, {**lane.env, **proof.env}
    stages = {name: commands for name, commands in lane.stages.items() if name != Stage.TEST}
    gates = {name: found for name, found in lane.gates.items() if gate is not Stage.EXACT or name != Stage.REACH}
    return dataclasses.replace(
        lane, defines=defines, env=env, stages=stages, gates=gates, digest=f"{lane.digest}-broken"
    )


def break_tree(proof: Proof, tree: Path) -> None:
    """Applies the patch, if there is one, to a scratch work tree; the patch is the tree's own."""
    if proof.patch is None:
        return
    done = git(tree, "apply", "--whitespace=nowarn", str(tree / proof.patch), check=False)
    if done.returncode != 0:
        why = (done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"])[0]
        raise Failed(Outcome.VOID, f"{proof.patch} no longer applies: {why}")


def how(proof: Proof) -> str:
    """In words, for the record and its reader."""
    parts = [proof.patch] if proof.patch else []
    parts += [f"-D{name}={value}" for name, value in sorted(proof.defines.items())]
    parts += [f"{name}={value}" for name, value in sorted(proof.env.items())]
    return " ".join(parts)


def judged(gate: Stage, proof: Proof, broken: dict[Stage, StageResult], commit: str, when: str) -> dict[str, Any]:
    """Whether the gate noticed. A build that fails, or a program that crashes, is not the gate's doing."""
    result = broken.get(gate)
    earlier = next((r for stage, r in broken.items() if stage is not gate and r.outcome.is_red), None)
    if earlier is not None:
        proven, why = False, f"without it {earlier.stage} is red already ({earlier.reason}), so the gate never ran"
    elif result is None or result.outcome in (Outcome.NOT_RUN, Outcome.BLOCKED):
        proven, why = False, f"the gate did not run: {result.reason if result else 'no such stage in this lane'}"
    elif result.first_error is not None and result.first_error.raw:
        proven, why = False, f"the program failed before the gate could measure: {result.reason}"
    else:
        proven, why = result.outcome.is_red, result.reason or f"the gate stayed {result.outcome}: it guards nothing"
    outcome = None if result is None else result.outcome.value
    return {"proven": proven, "how": how(proof), "commit": commit, "when": when, "outcome": outcome, "reason": why}

"""Interleaved rounds over all arms, and the best arm of each peer."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.peers.arms import Arm

PREFILL, DECODE = "prefill_tokens_per_s", "decode_tokens_per_s"


@dataclass
class Measured:
    arm: Arm
    runs: list[dict[str, Any]] = field(default_factory=list)
    reason: str | None = None  # why there are none

    def values(self, key: str) -> list[float]:
        return [float(run[key]) for run in self.runs if key in run]

    def median(self, key: str) -> float | None:
        values = self.values(key)
        return statistics.median(values) if values else None

    def spread(self, key: str) -> float:
        values = self.values(key)
        return (max(values) - min(values)) / statistics.median(values) if values else 0.0


def interleaved(arms: Sequence[Arm], rounds: int, say: Callable[[str], None]) -> list[Measured]:
    """Each round runs every arm once; every second round in the opposite order, so that a drift hits all alike."""
    found = [Measured(arm) for arm in arms]
    for number in range(rounds):
        for measured in found if number % 2 == 0 else reversed(found):
            if measured.reason is not None:
                continue
            answer = measured.arm.run()
            if isinstance(answer, str):
                measured.reason = answer
            else:
                measured.runs.append(answer)
            said = answer if isinstance(answer, str) else f"{answer[PREFILL]:.1f} / {answer[DECODE]:.1f} tokens/s"
            say(f"round {number + 1}: {measured.arm.peer} {measured.arm.name}: {said}")
    return found


def best_arms(found: Sequence[Measured]) -> list[Measured]:
    """Per peer the arm that decodes fastest, in the order in which the peers came; then those that didn't run."""
    peers = dict.fromkeys(measured.arm.peer for measured in found)
    chosen = []
    for peer in peers:
        ran = [m for m in found if m.arm.peer == peer and m.runs]
        absent = [m for m in found if m.arm.peer == peer]
        chosen.append(max(ran, key=lambda m: m.median(DECODE) or 0.0) if ran else absent[0])
    return chosen

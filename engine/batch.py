"""The persistent batch: carries a plan's changes over to the core's rows and launches the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.scheduler import Plan
from engine.sequence import Sequence

if TYPE_CHECKING:
    from engine import _core


class Batch:
    def __init__(self, runner: _core.Runner) -> None:
        self._runner = runner

    def launch(self, plan: Plan) -> _core.PendingStep:
        runner = self._runner
        for row in plan.removed_rows:
            runner.remove(row)
        for sequence in plan.added:
            self._add(sequence)
        for sequence, first in plan.grown:
            if sequence.row is not None:
                runner.set_blocks(sequence.row, first, np.array(sequence.blocks[first:], dtype=np.int32))
        return runner.launch(
            np.array(plan.rows, dtype=np.int32),
            np.array(plan.num_computed, dtype=np.int32),
            np.array(plan.num_tokens, dtype=np.int32),
            _allowed(plan),
        )

    def _add(self, sequence: Sequence) -> None:
        assert sequence.row is not None
        self._runner.add(
            sequence.row,
            np.array(sequence.token_ids, dtype=np.int32),
            sequence.sampling,
            sequence.num_prompt_tokens,
        )


def _allowed(plan: Plan) -> dict[int, np.ndarray] | None:
    """Bit masks of the tokens that constrained sequences may sample now."""
    masks = {s.row: s.grammar.mask() for s in plan.sampled if s.grammar is not None and s.row is not None}
    return masks or None

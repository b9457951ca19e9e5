"""What a step costs in Python on a runner that computes nothing. Run: python -m tests.engine.measure_scheduler [BATCH]

CPU time of the thread, so that a busy machine doesn't distort it. Medians over the decode steps.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np

from tests.engine.fake_core import EMPTY, FakeOutput, FakeRunner
from tests.engine.test_scheduler import Engine


class IdleRunner(FakeRunner):
    """Takes every call and answers with the same token."""

    def add(self, *arguments: Any) -> None: ...
    def remove(self, row: int) -> None: ...
    def set_blocks(self, *arguments: Any) -> None: ...

    def launch(self, rows: Any, num_computed: Any, num_tokens: Any, allowed: Any = None) -> Any:
        count = len(rows)
        zeros, ids = np.zeros(count, dtype=np.float32), np.ones(count, dtype=np.int64)
        self.output = FakeOutput(rows, ids, zeros, ids, zeros, [EMPTY] * count, [EMPTY] * count)
        return self

    def wait(self) -> FakeOutput:
        return self.output


def measure(batch: int, steps: int) -> dict[str, float]:
    engine = Engine(num_blocks=batch * 200, block_size=16, max_num_seqs=batch, budget=4096)
    runner = IdleRunner(1, 16, batch, 4096)
    engine.loop._batch._runner = runner  # type: ignore[assignment]
    for index in range(batch):
        engine.add([index] * 32, 960)
    for _ in range(5):
        engine.loop.step()
    scheduling, whole = [], []
    schedule = engine.scheduler.schedule

    def timed() -> Any:
        started = time.thread_time_ns()
        plan = schedule()
        scheduling.append(time.thread_time_ns() - started)
        return plan

    engine.scheduler.schedule = timed  # type: ignore[method-assign]
    for _ in range(steps):
        started = time.thread_time_ns()
        engine.loop.step()
        whole.append(time.thread_time_ns() - started)
    return {"schedule_us": statistics.median(scheduling) / 1e3, "whole_step_us": statistics.median(whole) / 1e3}


if __name__ == "__main__":
    batch = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    print(json.dumps({"batch": batch, "steps": 900, **measure(batch, 900)}))

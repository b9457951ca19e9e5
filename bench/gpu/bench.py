"""Speed of a GPU beside its limit: `python -m bench.gpu.bench`; with --build it compiles the engine first.

Each figure is the median of several runs after a warm-up, by the host's clock around synchronised work. The limit is
the bytes of weights that a token reads over the read bandwidth that a sum over 8 GB reaches on the same card.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.gpu.build import engine_core
from bench.gpu.peer import hugging_face_decode, read_bandwidth
from bench.gpu.shapes import QWEN3_0_6B, QWEN3_4B, ModelShape, build_model

BLOCK = 16


class Batch:
    """Rows 0..size-1 of a runner, each with its own blocks."""

    def __init__(self, core: Any, model: Any, size: int, prompt: int, room: int, **options: Any) -> None:
        self.core, self.size, self.prompt = core, size, prompt
        self.per_row = -(-(prompt + room) // BLOCK)
        self.runner = core.Runner(
            model,
            num_blocks=self.per_row * size,
            block_size=BLOCK,
            max_num_seqs=size,
            max_num_batched_tokens=max(prompt, size),
            **options,
        )
        self.rows = np.arange(size, dtype=np.int32)
        self.computed = np.zeros(size, np.int32)

    def prefill(self) -> float:
        """Adds every row afresh; seconds to the last first token."""
        rng = np.random.default_rng(1)
        for row in range(self.size):
            self.runner.add(
                row, rng.integers(0, 150_000, self.prompt).astype(np.int32), self.core.Sampling(), self.prompt
            )
            blocks = np.arange(row * self.per_row, (row + 1) * self.per_row, dtype=np.int32)
            self.runner.set_blocks(row, 0, blocks)
        begin = time.perf_counter()
        for row in range(self.size):
            one = self.rows[row : row + 1]
            step = self.runner.launch(one, np.zeros(1, np.int32), np.full(1, self.prompt, np.int32))
        step.wait()
        self.computed[:] = self.prompt
        return time.perf_counter() - begin

    def decode(self, steps: int) -> float:
        """Seconds of `steps` tokens per row; each step is launched before the one before is read."""
        one = np.ones(self.size, np.int32)
        begin = time.perf_counter()
        before = None
        for _ in range(steps):
            step = self.runner.launch(self.rows, self.computed.copy(), one)
            self.computed += 1
            if before is not None:
                before.wait()
            before = step
        before.wait()
        return time.perf_counter() - begin

    def clear(self) -> None:
        for row in range(self.size):
            self.runner.remove(row)


def median_of(count: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(count))


def decode_speed(core: Any, model: Any, size: int, *, steps: int = 128, **options: Any) -> float:
    """Tokens per second of `steps` steps after a 128-token prompt, each time from the prompt on."""
    warm_up = 4
    batch = Batch(core, model, size, prompt=128, room=warm_up + steps, **options)

    def once() -> float:
        batch.prefill()
        batch.decode(warm_up)
        seconds = batch.decode(steps)
        batch.clear()
        return seconds

    once()
    return size * steps / median_of(5, once)


def prefill_speed(core: Any, model: Any, tokens: int, **options: Any) -> float:
    batch = Batch(core, model, 1, prompt=tokens, room=BLOCK, **options)

    def once() -> float:
        seconds = batch.prefill()
        batch.clear()
        return seconds

    once(), once()
    return tokens / median_of(7, once)


def report(what: str, value: float, unit: str, note: str = "") -> None:
    print(f"{what:<46} {value:>12,.1f} {unit:<10} {note}", flush=True)


def measure(core: Any, shape: ModelShape, device: str, bandwidth: float, wanted: str) -> None:
    free = core.devices(device)[0].free_memory
    model = build_model(core, shape, device)
    limit = bandwidth / shape.bytes_per_token
    report(f"{shape.name}: limit, batch 1", limit, "tokens/s")
    for name, options in {
        "": {},
        ", mirror off": {"async_device_mirror": "off"},
        ", invariant": {"batch_invariant": True},
    }.items():
        if wanted and wanted not in "decode":
            break
        speed = decode_speed(core, model, 1, **options)
        report(f"{shape.name}: decode, batch 1{name}", speed, "tokens/s", f"{100 * speed / limit:.1f} % of the limit")
        report(f"{shape.name}: decode, batch 32{name}", decode_speed(core, model, 32, **options), "tokens/s")
    for name, options in {"": {}, ", invariant": {"batch_invariant": True}}.items():
        report(f"{shape.name}: prefill 2048{name}", prefill_speed(core, model, 2048, **options), "tokens/s")
    used = free - core.devices(device)[0].free_memory
    batch = Batch(core, model, 1, prompt=2048, room=BLOCK)
    batch.prefill()
    used = free - core.devices(device)[0].free_memory
    kept = model.weight_bytes + batch.runner.kv_bytes
    report(f"{shape.name}: device memory over weights + KV", 100 * (used / kept - 1), "%", f"{used / 2**20:,.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--build", action="store_true", help="compile the engine with this backend first")
    parser.add_argument("--peer", action="store_true", help="also time Hugging Face generate")
    parser.add_argument("--only", default="", help="decode: leave out what is slow")
    parser.add_argument("--model", default="", help="4B or 0.6B alone")
    arguments = parser.parse_args()
    core = engine_core(arguments.device if arguments.build else None)
    print(core.devices(arguments.device)[0].name, core.devices(arguments.device)[0].arch)
    bandwidth = read_bandwidth()
    report("read bandwidth, sum over 8 GB", bandwidth / 1e9, "GB/s")
    for shape in (QWEN3_4B, QWEN3_0_6B):
        if arguments.model and not shape.name.endswith(arguments.model):
            continue
        measure(core, shape, arguments.device, bandwidth, arguments.only)
        if arguments.peer:
            report(f"{shape.name}: Hugging Face generate, batch 1", hugging_face_decode(shape), "tokens/s")


if __name__ == "__main__":
    main()

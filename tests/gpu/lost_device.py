"""Run as a program: requests run in the server's worker when a kernel of another library kills the device.

Prints JSON: how each open request ended, and what a new one is told. A child of its own, as its device stays lost.
"""

from __future__ import annotations

import asyncio
import json
import sys

import torch

from engine import LLM, SamplingParams
from engine.errors import EngineError
from engine.server.metrics import Metrics
from engine.server.stream import Stream
from engine.server.worker import Worker

REQUESTS = 4


def kill_device() -> None:
    """An index out of range: the kernel traps, and every later call of this process on the device fails."""
    try:
        torch.zeros(4, device="cuda")[torch.tensor([1000], device="cuda")]
        torch.cuda.synchronize()
    except RuntimeError:
        return
    sys.exit("the device survived an index out of range")


async def main(model: str, device: str) -> None:
    llm = LLM(model, device=device, max_context=1024, kv_cache_tokens=8192)
    worker = Worker(llm, Metrics(), max_queue=16)
    worker.start(asyncio.get_running_loop())
    queue: asyncio.Queue[object] = asyncio.Queue()

    def stream() -> Stream:
        params = SamplingParams(max_tokens=900, ignore_eos=True)
        return Stream(llm.request([504, 3575, 282, 4649], params), queue, every_token=True, deadline=None)

    worker.submit([stream() for _ in range(REQUESTS)])
    ended, seen = [], 0
    while len(ended) < REQUESTS:
        pair = await asyncio.wait_for(queue.get(), 30)
        assert isinstance(pair, tuple)
        seen += 1
        if seen == 5 * REQUESTS:
            kill_device()
        if pair[1].finish_reason is not None:
            ended.append({"reason": str(pair[1].finish_reason), "error": pair[1].error})
    try:
        worker.submit([stream()])
        told = "accepted"
    except EngineError as error:
        told = str(error)
    worker.stop()
    print(json.dumps({"ended": ended, "told": told}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))

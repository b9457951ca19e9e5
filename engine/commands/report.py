"""What `--json` says about model, device, speed and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.llm import LLM
from engine.outputs import TokenLogprob


def heading(llm: LLM) -> dict[str, Any]:
    device = llm.model.device
    return {
        "model": llm.path.name,
        "device": {
            "backend": device.backend,
            "index": device.index,
            "name": device.name,
            "arch": device.arch,
            "driver": device.driver,
        },
        "precision": llm.model.precision,
        "threads": llm.model.threads,
        "attention_backend": llm.runner.attention_backend,
        "mirror": llm.runner.mirror,
        "batch_invariant": llm.config.batch_invariant or device.capabilities.batch_invariant,
    }


def costs(llm: LLM) -> dict[str, Any]:
    statistics = llm.loop.statistics
    return {
        "timings": {
            "load_s": llm.load_s,
            "prefill_tokens_per_s": statistics.prefill_tokens_per_s,
            "decode_tokens_per_s": statistics.decode_tokens_per_s,
        },
        "peak_memory_bytes": peak_memory_bytes(),
        "weight_bytes": llm.model.weight_bytes,
        "kv_bytes": llm.runner.kv_bytes,
        "huge_pages": {"asked": llm.model.huge_pages, "resident_bytes": _in_huge_pages()},
        "kernel_launches": llm.kernel_launches,
    }


def pairs(values: list[TokenLogprob]) -> list[dict[str, Any]]:
    return [{"token_id": value.token_id, "logprob": value.logprob} for value in values]


def _in_huge_pages() -> int:
    """What of this process really lies in huge pages: to ask for them (madvise) is not to get them."""
    path = Path("/proc/self/smaps_rollup")
    lines = path.read_text().splitlines() if path.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages:"))


def peak_memory_bytes() -> int:
    """The most memory this process had resident. Not getrusage: that also counts the process which started this one."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0

"""What this machine is, for the record: never its name."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from greenlane.lanes.lease import Card
from greenlane.record.model import Device

_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "asimddp", "i8mm", "sve")


def device(card: Card | None, executor: str) -> Device:
    """The card that the lane held, else the processor."""
    if card is not None:
        return Device(name=card.name, arch=card.arch, driver=card.driver, executor=executor, host=host())
    facts = host()
    return Device(name=facts["cpu"], arch=platform.machine(), executor=executor, host=facts)


def host() -> dict[str, str]:
    cpu, flags = _processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu,
        "cores": str(len(os.sched_getaffinity(0))),
        "features": " ".join(feature for feature in _FEATURES if feature in flags),
        "memory_bytes": str(memory),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }


def _processor() -> tuple[str, set[str]]:
    try:
        facts = {
            key.strip(): value.strip()
            for key, _, value in (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
        }
    except OSError:
        facts = {}
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    return facts.get("model name") or platform.processor() or platform.machine(), flags

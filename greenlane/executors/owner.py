"""Tells whose a container is: a process of this machine, this boot and this namespace, by number and start time."""

from __future__ import annotations

import os
from pathlib import Path


def me() -> str:
    return f"{_world()}:{os.getpid()}:{_started(os.getpid())}"


def has_ended(owner: str) -> bool:
    """Whether the owner is known to be gone; another machine's or another namespace's can't be known."""
    world, _, rest = owner.rpartition(":")
    world, _, process = world.rpartition(":")
    return world == _world() and process.isdigit() and _started(int(process)) != rest


def _world() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{Path('/proc/self/ns/pid').readlink().name.strip('pid:[]')}"
    except OSError:
        return "unknown"


def _started(process: int) -> str:
    """Clock ticks since boot at which the process began; empty where there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""

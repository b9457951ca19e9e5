"""Cards of this machine, and the lease of one card to one lane at a time, across all greenlanes of the machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from greenlane.errors import EnvironmentMissing

POLL_S = 0.2
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_GFX_DIGITS = 100


@dataclass(frozen=True, slots=True)
class Card:
    vendor: str  # "amd", "nvidia"
    index: int
    name: str
    arch: str  # "gfx1100", "sm_90"
    driver: str


def cards(vendor: str) -> list[Card]:
    return {"amd": _amd, "nvidia": _nvidia}[vendor]() if vendor in ("amd", "nvidia") else []


@contextmanager
def leased(vendor: str | None, archs: tuple[str, ...], cancel: threading.Event) -> Iterator[Card | None]:
    """Holds a card, one of `archs` before a sibling; waits while others hold them all. None where there is none."""
    here = cards(vendor) if vendor is not None else []
    if not here:
        yield None
        return
    here.sort(key=lambda card: card.arch not in archs)
    card, lock = _wait_for_one(here, cancel)
    try:
        yield card
    finally:
        lock.close()


def _wait_for_one(here: list[Card], cancel: threading.Event) -> tuple[Card, IO[str]]:
    while not cancel.is_set():
        for card in here:
            lock = _lock_file(card)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return card, lock
            except BlockingIOError:
                lock.close()
        time.sleep(POLL_S)
    raise EnvironmentMissing("stopped while waiting for a card")


def _lock_file(card: Card) -> IO[str]:
    """Shared by all users of the machine, so anybody may open it; a lock needs no right to write."""
    path = Path(tempfile.gettempdir()) / f"greenlane-{card.vendor}-{card.index}.lock"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise EnvironmentMissing(f"cannot lease the {card.name}: {path}: {error.strerror}") from error
    return os.fdopen(descriptor)


def _nvidia() -> list[Card]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = [tool, "--query-gpu=index,name,compute_cap,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = (line.split(", ") for line in done.stdout.splitlines())
    return [
        Card("nvidia", int(row[0]), row[1], f"sm_{row[2].replace('.', '')}", row[3]) for row in rows if len(row) == 4
    ]


def _amd() -> list[Card]:
    """From the kernel driver's own topology: no ROCm tool is needed on the host."""
    found: list[Card] = []
    for node in sorted(_KFD_NODES.glob("*"), key=lambda path: int(path.name)):
        properties = dict(line.split(" ", 1) for line in _read(node / "properties").splitlines() if " " in line)
        version = int(properties.get("gfx_target_version", "0"))
        if version:
            found.append(
                Card("amd", len(found), _read(node / "name").strip() or "AMD GPU", gfx_name(version), _amd_driver())
            )
    return found


def gfx_name(version: int) -> str:
    """
    >>> gfx_name(110000), gfx_name(90010), gfx_name(110501)
    ('gfx1100', 'gfx90a', 'gfx1151')
    """
    major, minor, step = version // 10000, version // _GFX_DIGITS % _GFX_DIGITS, version % _GFX_DIGITS
    return f"gfx{major}{minor:x}{step:x}"


def _amd_driver() -> str:
    return _read(Path("/sys/module/amdgpu/version")).strip() or os.uname().release


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

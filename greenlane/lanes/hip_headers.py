"""Objects of HIP sources don't name device-only headers as dependencies, so a changed header must distrust them all.

clang writes the dependency file of its host pass alone. With a compiler cache the untouched ones come back at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from greenlane.lanes import untrusted
from greenlane.lanes.context import Context
from greenlane.ledger.store import write_durably

STAMP = ".greenlane-headers"
_HIP = re.compile(r"(^|\s)(-x\s*hip\b|--offload-arch=gfx|--cuda-gpu-arch=gfx)|\bhipcc\b")
_OUTPUT = re.compile(r"(?:^|\s)-o\s+(\S+)")


def distrust_stale_objects(context: Context) -> None:
    """Removes every HIP object where a header has changed since the last build that ended."""
    if untrusted.read_text(context.host.build, STAMP) == context.tree.headers_digest():
        return
    for output in hip_objects(context.host.build, context.executor.inside.build):
        with contextlib.suppress(OSError):
            output.unlink()


def remember(context: Context, *, complete: bool) -> None:
    stamp = context.host.build / STAMP
    if complete:
        write_durably(stamp, context.tree.headers_digest().encode())
    else:
        stamp.unlink(missing_ok=True)


def hip_objects(build: Path, inside: Path) -> Iterator[Path]:
    """The objects that the compile commands make of HIP sources, on the host; the lane calls `build` `inside`."""
    try:
        entries = json.loads(untrusted.read_text(build, "compile_commands.json") or "[]")
        commands = [entry.get("command") or " ".join(entry.get("arguments", ())) for entry in entries]
        outputs = [entry.get("output") or _output(command) for entry, command in zip(entries, commands, strict=True)]
    except (ValueError, AttributeError, TypeError):
        return
    for command, output in zip(commands, outputs, strict=True):
        if output and _HIP.search(command):
            place = Path(os.path.normpath(inside / output))
            if place.is_relative_to(inside):
                path = (build / place.relative_to(inside)).resolve()
                if path.is_relative_to(build.resolve()):
                    yield path


def _output(command: str) -> str | None:
    match = _OUTPUT.search(command)
    return match[1] if match else None

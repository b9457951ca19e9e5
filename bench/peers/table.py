"""The table that the README shows, and the place in the README where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.peers.series import DECODE, PREFILL, Measured

BEGIN, END = "<!-- peers: begin (made by nox -s peers) -->", "<!-- peers: end -->"


@dataclass(frozen=True)
class Machine:
    cpu: str
    threads: int
    bytes_per_s: float | None
    bytes_per_token: int  # what a decode step reads of the weights


def table(chosen: Sequence[Measured], machine: Machine, prefill: int, decode: int) -> str:
    head = [
        f"| tokens/s, {machine.threads} threads | prefill {prefill} | decode {decode} | load | peak memory | version |",
        "|---|---|---|---|---|---|",
    ]
    lines = [*head, *(row(measured) for measured in chosen), ""]
    return "\n".join([*lines, ratios(chosen), limit(machine)]).strip() + "\n"


def row(measured: Measured) -> str:
    name = f"{measured.arm.peer} ({measured.arm.name})" if measured.arm.name else measured.arm.peer
    if not measured.runs:
        return f"| {name} | not run: {(measured.reason or 'no reason')[:100].replace('|', '/')} | | | | |"
    version = measured.runs[0].get("version", "this tree")
    memory, load = measured.median("peak_memory_bytes"), measured.median("load_s")
    cells = [
        name,
        speed(measured, PREFILL),
        speed(measured, DECODE),
        "" if load is None else f"{load:.2f} s",
        "" if memory is None else f"{memory / 1e6:.0f} MB",
        version,
    ]
    return "| " + " | ".join(cells) + " |"


def speed(measured: Measured, key: str) -> str:
    return f"{measured.median(key):.0f} (±{measured.spread(key) / 2:.0%})"


def ratios(chosen: Sequence[Measured]) -> str:
    """The engine against each peer's best arm, round by round; the median of the ratios."""
    ours = next((m for m in chosen if m.arm.peer == "engine" and m.runs), None)
    if ours is None:
        return "The engine did not run."
    said = []
    for peer in chosen:
        if peer is ours or not peer.runs:
            continue
        prefill, decode = (ratio(ours, peer, key) for key in (PREFILL, DECODE))
        said.append(f"{prefill:.2f} times the prefill and {decode:.2f} times the decode of {peer.arm.peer}")
    return f"The engine reaches {'; '.join(said)} (medians of the same rounds)." if said else "No peer ran."


def ratio(ours: Measured, peer: Measured, key: str) -> float:
    found = sorted(a / b for a, b in zip(ours.values(key), peer.values(key), strict=False))
    middle = len(found) // 2
    return found[middle] if len(found) % 2 else (found[middle - 1] + found[middle]) / 2


def limit(machine: Machine) -> str:
    if machine.bytes_per_s is None:
        return f"{machine.cpu}; its bandwidth could not be measured."
    ceiling = machine.bytes_per_s / machine.bytes_per_token
    read = f"reads {machine.bytes_per_s / 1e9:.1f} GB/s on {machine.threads} threads"
    return f"{machine.cpu} {read}: at {machine.bytes_per_token / 1e6:.1f} MB per token no decode passes {ceiling:.0f}."


def put(text: str, file: Path) -> None:
    """Replaces what stands between the marks."""
    whole = file.read_text(encoding="utf-8")
    if whole.count(BEGIN) != 1 or whole.count(END) != 1 or whole.index(BEGIN) > whole.index(END):
        raise SystemExit(f"{file}: put the lines `{BEGIN}` and `{END}` once, where the table goes")
    before, rest = whole.split(BEGIN)
    file.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")

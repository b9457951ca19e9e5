"""Instructions as the toolchain's own llvm-objdump prints them, taken apart into mnemonic, operands and modifiers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from greenlane.errors import EnvironmentMissing

_LINE = re.compile(r"^\s+(\S.*?)\s*// ([0-9A-F]{12}): ([0-9A-F ]+?)(?:\s<(.+?)(?:\+0x([0-9a-f]+))?>)?\s*$")
_SYMBOL = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_ENCODING = re.compile(r"_(e32|e64|e64_dpp|dpp|sdwa)$")


@dataclass(frozen=True)
class Instruction:
    """One instruction, or one half of a dual one."""

    address: int
    text: str
    mnemonic: str
    encoding: str  # "", "e32", "e64", "dpp", "e64_dpp" or "sdwa"
    operands: tuple[str, ...]
    modifiers: Mapping[str, str]  # a bare flag has the value ""
    words: tuple[int, ...]
    target: int | None = None  # of a branch
    second: Instruction | None = None  # the other half of a dual instruction

    @property
    def end(self) -> int:
        return self.address + 4 * len(self.words)


def disassemble(objdump: str, path: Path, symbols: tuple[str, ...] = ()) -> dict[str, list[Instruction]]:
    """The instructions of each function in a code object, or only of those that `symbols` names."""
    only = [f"--disassemble-symbols={','.join(symbols)}"] if symbols else ["-d"]
    command = [objdump, *only, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentMissing(f"can't run the disassembler {objdump}: {error.strerror}") from None
    if done.returncode:
        raise EnvironmentMissing(f"{objdump} failed on {path}: {done.stderr.strip().splitlines()[-1:]}")
    return parse(done.stdout)


def parse(listing: str) -> dict[str, list[Instruction]]:
    """What llvm-objdump printed, function by function."""
    functions: dict[str, list[Instruction]] = {}
    starts: dict[str, int] = {}
    current: list[Instruction] = []
    for line in listing.splitlines():
        if symbol := _SYMBOL.match(line):
            starts[symbol[2]] = int(symbol[1], 16)
            current = functions.setdefault(symbol[2], [])
        elif found := _LINE.match(line):
            target = starts.get(found[4], 0) + int(found[5] or "0", 16) if found[4] else None
            words = tuple(int(word, 16) for word in found[3].split())
            current.append(instruction(found[1], int(found[2], 16), words, target))
    return functions


def instruction(text: str, address: int = 0, words: tuple[int, ...] = (0,), target: int | None = None) -> Instruction:
    """
    >>> one = instruction("v_add_f32_e64 v0, -v1, |v2| clamp mul:2")
    >>> one.mnemonic, one.operands, dict(one.modifiers)
    ('v_add_f32', ('v0', '-v1', '|v2|'), {'clamp': '', 'mul': '2'})
    """
    if " :: " in text:
        first, second = (instruction(half.replace("v_dual_", "v_"), address, words) for half in text.split(" :: "))
        return replace(first, text=text, second=second)
    opcode, _, rest = text.partition(" ")
    encoding = _ENCODING.search(opcode)
    mnemonic = opcode[: encoding.start()] if encoding else opcode
    operands, modifiers = _operands(rest.strip())
    return Instruction(address, text, mnemonic, encoding[1] if encoding else "", operands, modifiers, words, target)


def _operands(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    parts = _split(text, ",")
    modifiers: dict[str, str] = {}
    operands = []
    for part in parts:
        head, *tail = _split(part, " ") or [""]
        if ":" in head and "[" not in head.partition(":")[0]:
            tail = [head, *tail]
        elif head:
            operands.append(head)
        for word in tail:
            name, _, value = word.partition(":")
            modifiers[name] = value
    return tuple(operands), modifiers


def _split(text: str, separator: str) -> list[str]:
    """Splits outside of brackets and parentheses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]

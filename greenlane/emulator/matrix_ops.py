"""WMMA and MFMA instructions to C++."""

from __future__ import annotations

import re

from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers
from greenlane.emulator.vector import op_sel

_WMMA = re.compile(r"v_wmma_(f32|f16|bf16|i32)_16x16x(16|32)_(f16|bf16|iu8|iu4)")
_MFMA = re.compile(r"v_mfma_(f32|i32|f64)_(4x4x|16x16x|32x32x)(\d+)_?(?:(\d+)b_)?(f32|f16|bf16|i8|f64)(?:_1k)?")
_NUMBERS = {"f16": "kF16", "bf16": "kBf16", "i8": "kI8", "f32": "kF32", "f64": "kF64"}
_SUMS = {"f32": "float", "i32": "i32", "f64": "double"}


def translate(one: Instruction, registers: Registers) -> str | None:
    """The C++ of a matrix instruction; None for another."""
    if found := _WMMA.fullmatch(one.mnemonic):
        return _wmma(one, registers, found)
    if found := _MFMA.fullmatch(one.mnemonic):
        return _mfma(one, registers, found)
    return None


def _operand(name: str, text: str, count: int, registers: Registers) -> str:
    if registers.is_vector(text):
        return f"const U32 {name}[{count}] = {{{', '.join(registers.names(text, count))}}};"
    return f"const U32 {name}[{count}] = {{{', '.join([registers.v32(text)] * count)}}};"


def _operands(one: Instruction, sources: int, results: int, registers: Registers) -> str:
    counts = (sources, sources, results)
    return " ".join(_operand(*item, registers) for item in zip("abc", one.operands[1:], counts, strict=True))


def _write(target: str, registers: Registers) -> str:
    """All lanes are written: exec does not count."""
    return " ".join(f"{name} = d[{index}];" for index, name in enumerate(registers.names(target)))


def _wmma(one: Instruction, registers: Registers, found: re.Match[str]) -> str:
    result, depth, kind = found[1], found[2], found[3]
    target, a = one.operands[:2]
    negated = any(op_sel(one, "neg_lo", 3)) and not kind.startswith("iu")
    clamped = "clamp" in one.modifiers
    if negated or any(op_sel(one, "neg_hi", 3)) or (clamped and result != "i32") or registers.lanes != 32:
        raise UnknownInstruction(one.text, "modifier or wave64")
    gfx12 = "true" if registers.generation == 12 else "false"
    sources, results = len(registers.names(a)), len(registers.names(target))
    held = _operands(one, sources, results, registers)
    if result in ("f16", "bf16"):
        upper = "true" if op_sel(one, "op_sel", 3)[2] else "false"
        copies = ", ".join(registers.names(target))
        call = f"U32 d[{results}] = {{{copies}}}; wmma16<{gfx12}, Number::{_NUMBERS[kind]}>(a, b, c, d, {upper});"
    else:
        left, right = _wmma_numbers(one, kind)
        sums = "" if clamped else f", {_SUMS[result]}"
        function = "wmma32_clamped" if clamped else "wmma32"
        call = f"U32 d[8]; {function}<{gfx12}, {depth}, {left}, {right}{sums}>(a, b, c, d);"
    return f"{{ {held} {call} {_write(target, registers)} }}"


def _wmma_numbers(one: Instruction, kind: str) -> tuple[str, str]:
    """For integers neg_lo says which operand is signed."""
    if not kind.startswith("iu"):
        return f"Number::{_NUMBERS[kind]}", f"Number::{_NUMBERS[kind]}"
    signs = op_sel(one, "neg_lo", 3)
    left, right = (f"Number::k{'I' if sign else 'U'}{kind[2:]}" for sign in signs[:2])
    return left, right


def _mfma(one: Instruction, registers: Registers, found: re.Match[str]) -> str:
    result, size, depth, kind = found[1], int(found[2].split("x")[0]), int(found[3]), found[5]
    target, a = one.operands[:2]
    if set(one.modifiers) & {"cbsz", "abid", "blgp", "neg"}:
        raise UnknownInstruction(one.text, "broadcast of blocks")
    sources, results = len(registers.names(a)), len(registers.names(target))
    words = 2 if result == "f64" else 1
    blocks = results * 64 // words // (size * size)
    numbers = f"Number::{_NUMBERS[kind]}, Number::{_NUMBERS[kind]}, {_SUMS[result]}"
    held = _operands(one, sources, results, registers)
    call = f"U32 d[{results}]; mfma<{size}, {depth}, {blocks}, {numbers}>(a, b, c, d);"
    return f"{{ {held} {call} {_write(target, registers)} }}"

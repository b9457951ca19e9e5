"""Atomic instructions, and the LDS instructions that only move data between lanes, to C++."""

from __future__ import annotations

import re

from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers

_KINDS = {"global": "Global", "flat": "Flat", "scratch": "Scratch", "ds": "Lds"}
# Operation as the C++ names it, by the middle of the mnemonic and the type at its end.
_OPERATIONS = {
    "add": "Add",
    "sub": "Sub",
    "rsub": "ReverseSub",
    "min": "Smaller",
    "max": "Larger",
    "min_num": "Smaller",
    "max_num": "Larger",
    "and": "And",
    "or": "Or",
    "xor": "Xor",
    "swap": "Swap",
    "wrxchg": "Swap",
    "storexchg": "Swap",
    "inc": "Increment",
    "dec": "Decrement",
    "csub": "SubClamped",
    "sub_clamp": "SubClamped",
}
_TYPES = {
    "u32": "u32",
    "i32": "i32",
    "b32": "u32",
    "f32": "float",
    "u64": "u64",
    "i64": "i64",
    "b64": "u64",
    "f64": "double",
}
# gfx9 names its global atomics without a type.
_GFX9 = re.compile(r"(smin|smax|umin|umax|add|sub|and|or|xor|swap|inc|dec|cmpswap)(_x2)?")
_SIGNED = {"smin": ("min", "i"), "smax": ("max", "i"), "umin": ("min", "u"), "umax": ("max", "u")}
_COMPARE_SWAPS = ("cmpswap", "cmpstore", "cmpst")


def translate(one: Instruction, space: str, operation: str, registers: Registers) -> str | None:
    """None when the mnemonic is no atomic."""
    if space == "ds":
        return _exchange(one, operation, registers) or _lds(one, operation, registers)
    if space == "buffer" or not operation.startswith("atomic_"):
        return None
    name = operation.removeprefix("atomic_")
    if found := _GFX9.fullmatch(name):
        base, letter = _SIGNED.get(found[1], (found[1], "u"))
        name = f"{base}_{letter}{'64' if found[2] else '32'}"
    return _global(one, space, name, registers)


def _global(one: Instruction, space: str, name: str, registers: Registers) -> str:
    from greenlane.emulator.memory import address

    with_base = space != "flat"
    count = len(one.operands) - (1 if with_base else 0)
    scalar = one.operands[-1] if with_base else None
    target = one.operands[0] if count == 3 else None
    vector, data = one.operands[count - 2], one.operands[count - 1]
    where = address(one, space, registers, vector, scalar)
    return _emit(one, _KINDS[space], name, target, where, data, None, registers)


def _lds(one: Instruction, operation: str, registers: Registers) -> str | None:
    from greenlane.emulator.memory import address

    returns = "_rtn" in operation
    name = operation.replace("_rtn", "")
    base = name.rpartition("_")[0]
    if base not in _OPERATIONS and base not in _COMPARE_SWAPS and not base.startswith("pk_add"):
        return None
    target = one.operands[0] if returns else None
    vector, *data = one.operands[1:] if returns else one.operands
    where = address(one, "ds", registers, vector, None)
    if base == "cmpst":  # the older form names the expected value first
        data = data[::-1]
    return _emit(one, "Lds", name, target, where, data[0], data[1] if len(data) > 1 else None, registers)


def _emit(
    one: Instruction,
    space: str,
    name: str,
    target: str | None,
    where: str,
    data: str,
    expected: str | None,
    registers: Registers,
) -> str:
    base, _, kind = name.rpartition("_")
    wide = kind.endswith("64")
    size = 2 if wide else 1
    if base in _COMPARE_SWAPS:
        values = _values(data, size, registers)
        wanted = _values(expected, size, registers) if expected else _second_half(data, size, registers)
        call = f"compare_swap{'64' if wide else '32'}<{space}>(wave, {registers.exec}, {where}, {values}, {wanted}"
    else:
        operation, form = _operation(one, base, kind)
        values = _values(data, size, registers)
        call = f"atomic{'64' if wide else '32'}<{space}, {operation}, {form}>(wave, {registers.exec}, {where}, {values}"
    if target is None:
        return f"{call}, {'U64' if wide else 'U32'}{{}}, {one.address:#x});"
    old = registers.v64(target) if wide else registers.v32(target)
    result = f"{call}, {old}, {one.address:#x})"
    return registers.set_v64(target, result) if wide else registers.set_v32(target, result)


def _operation(one: Instruction, base: str, kind: str) -> tuple[str, str]:
    if base == "pk_add":
        return ("AddHalves" if kind == "f16" else "AddBf16"), "u32"
    if base in _OPERATIONS and kind in _TYPES:
        return _OPERATIONS[base], _TYPES[kind]
    raise UnknownInstruction(one.text)


def _values(text: str, size: int, registers: Registers) -> str:
    names = registers.names(text)
    return f"join({names[0]}, {names[1]})" if size == 2 else names[0]


def _second_half(text: str, size: int, registers: Registers) -> str:
    names = registers.names(text)[size:]
    return f"join({names[0]}, {names[1]})" if size == 2 else names[0]


def _exchange(one: Instruction, operation: str, registers: Registers) -> str | None:
    """ds_bpermute, ds_permute and ds_swizzle touch no memory."""
    offset = int(one.modifiers.get("offset", "0"), 0) if operation != "swizzle_b32" else 0
    if operation in ("bpermute_b32", "permute_b32"):
        target, where, data = one.operands
        function = "read_lanes" if operation.startswith("b") else "write_lanes"
        values = f"{registers.v32(where)}, {offset}u, {registers.v32(data)}"
        return registers.set_v32(target, f"{function}(wave, {registers.exec}, {values}, {one.address:#x})")
    if operation == "swizzle_b32":
        target, data = one.operands
        table = ", ".join(str(lane) for lane in swizzle(one.words[0] & 0xFFFF, registers.lanes))
        data = f"select({registers.exec}, {registers.v32(data)}, splat(0))"
        return f"{{ const U32 from = {{{table}}}; {registers.set_v32(target, f'gather_lanes({data}, from)')} }}"
    return None


def swizzle(pattern: int, lanes: int) -> list[int]:
    """The lane that each lane reads.

    >>> swizzle(0x8000 | 0b00_01_10_11, 32)[:8]
    [3, 2, 1, 0, 7, 6, 5, 4]
    >>> swizzle(0x1F | 1 << 10, 32)[:4]
    [1, 0, 3, 2]
    """
    if pattern >> 15:
        return [lane & ~3 | pattern >> 2 * (lane & 3) & 3 for lane in range(lanes)]
    keep, force, flip = pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31
    return [lane & ~31 | (lane & 31 & keep | force) ^ flip for lane in range(lanes)]

"""Global, flat, scratch and LDS instructions to C++."""

from __future__ import annotations

import re

from greenlane.emulator import atomics
from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers

_SPACES = {"global": "Global", "flat": "Flat", "scratch": "Scratch", "ds": "Lds", "buffer": "Scratch"}
_IGNORED = re.compile(r"buffer_(gl\d_inv|inv\w*|wb\w*|wbl2|wbinvl1\w*)|global_(inv|wb|wbinv)|ds_nop")
_WIDE = re.compile(r"(load|store|read|write)_(?:b(\d+)|dword(?:x(\d))?)")
_NARROW_LOAD = re.compile(
    r"(?:load|read)_(?:(d16_hi|d16)_)?(?:([iub])(8|16)|(u|s)(byte|short)|(short))(?:_(d16_hi|d16))?"
)
_NARROW_STORE = re.compile(r"(?:store|write)_(?:(d16_hi)_)?(?:b(8|16)|(byte|short))(?:_(d16_hi))?")
_TWO = re.compile(r"(load|store|read|write)_?2(?:addr)?_?(st(?:ride)?64_)?b(32|64)")
_WIDTH = {"byte": 8, "short": 16}


def translate(one: Instruction, registers: Registers) -> str | None:
    """The C++ of a memory instruction; None for another."""
    space, _, operation = one.mnemonic.partition("_")
    if space not in _SPACES:
        return None
    if _IGNORED.fullmatch(one.mnemonic):
        return ";"
    for pattern, handler in (
        (_WIDE, _wide),
        (_NARROW_LOAD, _narrow_load),
        (_NARROW_STORE, _narrow_store),
        (_TWO, _two),
    ):
        if found := pattern.fullmatch(operation):
            return handler(one, space, registers, found)
    return atomics.translate(one, space, operation, registers)


def address(one: Instruction, space: str, registers: Registers, vector: str, scalar: str | None) -> str:
    """A 64-bit address over the lanes, or for scratch and LDS a 32-bit offset."""
    offset = int(one.modifiers.get("offset", "0"), 0)
    if space == "ds":
        return f"{registers.v32(vector)} + {offset}u" if offset else registers.v32(vector)
    if space == "buffer":
        return _buffer_offset(one, registers, vector, scalar, offset)
    if space == "scratch":
        parts = [registers.v32(vector) if vector != "off" else "splat(0)"]
        parts += [registers.s32(scalar)] if scalar and scalar != "off" else []
        return f"{' + '.join(parts)} + (u32)({offset})"
    if scalar is None or scalar == "off":
        low, high = registers.names(vector)[:2]
        return f"address64({low}, {high}, {offset})"
    return f"address64({registers.s64(scalar)}, {registers.v32(vector)}, {offset})"


def _buffer_offset(one: Instruction, registers: Registers, vector: str, scalar: str | None, offset: int) -> str:
    """Only the stack of gfx90a kernels, which they reach through the descriptor in s[0:3]."""
    if one.operands[2] != "s[0:3]" or "idxen" in one.modifiers:
        raise UnknownInstruction(one.text, "buffers other than the stack")
    lane = registers.v32(vector) if "offen" in one.modifiers else "splat(0)"
    return f"{lane} + {registers.s32(scalar or '0')} + {offset}u"


def places(one: Instruction, space: str, *, store: bool) -> tuple[str, str, str | None]:
    """Data, vector address and scalar base as they stand among the operands."""
    operands = one.operands
    if space == "ds":
        return (operands[1], operands[0], None) if store else (operands[0], operands[1], None)
    if space == "buffer":
        return operands[0], operands[1], operands[3]
    scalar = operands[2] if len(operands) > 2 else None
    return (operands[1], operands[0], scalar) if store else (operands[0], operands[1], scalar)


def _wide(one: Instruction, space: str, registers: Registers, found: re.Match[str]) -> str | None:
    bits = int(found[2]) if found[2] else 32 * int(found[3] or 1)
    if bits < 32:
        return _narrow_store(one, space, registers, re.fullmatch(_NARROW_STORE, one.mnemonic.partition("_")[2]))
    store = found[1] in ("store", "write")
    data, vector, scalar = places(one, space, store=store)
    return _access(one, space, registers, data, address(one, space, registers, vector, scalar), bits // 32, store=store)


def _access(
    one: Instruction, space: str, registers: Registers, data: str, where: str, count: int, *, store: bool
) -> str:
    names = registers.names(data, count)
    kind, call = _SPACES[space], f"wave, {registers.exec}, {where}, data, {one.address:#x}"
    held = f"U32 data[{count}] = {{{', '.join(names)}}};"
    if store:
        return f"{{ const {held} store<{kind}, {count}>({call}); }}"
    back = " ".join(f"{name} = data[{index}];" for index, name in enumerate(names))
    return f"{{ {held} load<{kind}, {count}>({call}); {back} }}"


def _narrow_load(one: Instruction, space: str, registers: Registers, found: re.Match[str]) -> str:
    half = found[1] or found[7]
    bits = int(found[3]) if found[3] else _WIDTH[found[5] or found[6]]
    kind = f"{'i' if (found[2] or found[4]) in ('i', 's') else 'u'}{bits}"
    data, vector, scalar = places(one, space, store=False)
    where = address(one, space, registers, vector, scalar)
    name = registers.names(data.partition(".")[0])[0]
    call = f"load_narrow<{_SPACES[space]}, {kind}>(wave, {registers.exec}, {where}, {name}, {one.address:#x})"
    if half is None and "." not in data:
        return f"{name} = {call};"
    upper = half == "d16_hi" or data.endswith(".h")
    merged = registers.set_v16(data.partition(".")[0], "low16(loaded)", upper)
    return f"{{ const U32 loaded = {call}; {merged} }}"


def _narrow_store(one: Instruction, space: str, registers: Registers, found: re.Match[str] | None) -> str:
    if found is None:
        raise UnknownInstruction(one.text)
    bits = int(found[2]) if found[2] else _WIDTH[found[3]]
    data, vector, scalar = places(one, space, store=True)
    where = address(one, space, registers, vector, scalar)
    upper = found[1] or found[4] or data.endswith(".h")
    value = registers.v32(data.partition(".")[0]) + (" >> 16u" if upper else "")
    return f"store_narrow<{_SPACES[space]}, u{bits}>(wave, {registers.exec}, {where}, {value}, {one.address:#x});"


def _two(one: Instruction, space: str, registers: Registers, found: re.Match[str]) -> str:
    """Two accesses at two offsets, counted in elements or in 64 of them."""
    size = int(found[3]) // 8
    stride = size * (64 if found[2] else 1)
    offsets = [int(one.modifiers.get(name, "0"), 0) * stride for name in ("offset0", "offset1")]
    count = size // 4
    if found[1] in ("store", "write"):
        vector, *values = one.operands
        accesses = [
            _access(one, space, registers, value, f"where + {offset}u", count, store=True)
            for value, offset in zip(values, offsets, strict=True)
        ]
        return f"{{ const U32 where = {registers.v32(vector)}; {' '.join(accesses)} }}"
    names = registers.names(one.operands[0])
    loads = []
    for index, offset in enumerate(offsets):
        part = names[index * count : (index + 1) * count]
        loads.append(_load_into(one, registers, part, offset))
    return f"{{ const U32 where = {registers.v32(one.operands[1])}; {' '.join(loads)} }}"


def _load_into(one: Instruction, registers: Registers, names: list[str], offset: int) -> str:
    back = " ".join(f"{name} = data[{index}];" for index, name in enumerate(names))
    call = f"load<Lds, {len(names)}>(wave, {registers.exec}, where + {offset}u, data, {one.address:#x});"
    return f"{{ U32 data[{len(names)}] = {{{', '.join(names)}}}; {call} {back} }}"

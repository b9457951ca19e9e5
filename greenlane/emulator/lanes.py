"""DPP and SDWA: which lanes and which parts of a register an operand comes from and a result goes to."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers, modifiers_of

_DPP_MODIFIERS = {"row_mask", "bank_mask", "bound_ctrl", "fi"}
_SDWA_MODIFIERS = {"dst_sel", "dst_unused", "src0_sel", "src1_sel"}
_FIELDS = {
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    "DWORD": (0, 32),
}


def around(one: Instruction, registers: Registers, plain: Callable[[Instruction], str]) -> str:
    """`plain` translates the instruction once DPP and SDWA have been taken off it."""
    if "dpp" in one.encoding:
        return _dpp(one, registers, plain)
    if one.encoding == "sdwa":
        return _sdwa(one, registers, plain)
    return plain(one)


def _dpp(one: Instruction, registers: Registers, plain: Callable[[Instruction], str]) -> str:
    """The first source comes from other lanes; lanes without a source may drop out of the write."""
    control = next((name for name in one.modifiers if _lane_pattern(name)), None)
    if control is None:
        raise UnknownInstruction(one.text, "DPP")
    sources = [_lane_pattern(control)(lane, one.modifiers[control]) for lane in range(registers.lanes)]  # type: ignore[misc]
    valid = sum(1 << lane for lane, source in enumerate(sources) if source is not None)
    writes = _written_lanes(one, registers.lanes)
    rest = {name: value for name, value in one.modifiers.items() if name not in _DPP_MODIFIERS | {control}}
    at = _source_index(one)
    moved, negated, absolute, _ = modifiers_of(one.operands[at])
    stand_in = f"{'-' if negated else ''}{'|moved|' if absolute else 'moved'}"
    operands = (*one.operands[:at], stand_in, *one.operands[at + 1 :])
    flags = f"{_flag(one, 'fi')}, {_flag(one, 'bound_ctrl')}"
    table = ", ".join(str(source or 0) for source in sources)
    outer = registers.exec
    inner = f"{{ Mask dpp_writes = {outer} & {writes:#x}ull; const U32 dpp_source = {{{table}}}; "
    value = registers.v32(moved.partition(".")[0])
    inner += f"const U32 moved = dpp({value}, dpp_source, {valid:#x}ull, {outer}, {flags}, dpp_writes); "
    registers.exec = "dpp_writes"
    try:
        inner += plain(replace(one, operands=operands, modifiers=rest, encoding=""))
    finally:
        registers.exec = outer
    return inner + " }"


def _source_index(one: Instruction) -> int:
    """Where the first source stands: after the result, and after the carry-out where there is one."""
    if re.match(r"v_(add|sub|subrev|addc|subb|subbrev)_co_", one.mnemonic):
        return 2
    if one.mnemonic.startswith("v_cmpx_"):
        return len(one.operands) - 2
    return 1


def _flag(one: Instruction, name: str) -> str:
    return "true" if one.modifiers.get(name) in ("1", "0" if name == "bound_ctrl" else "1") else "false"


def _written_lanes(one: Instruction, count: int) -> int:
    rows, banks = (int(one.modifiers.get(name, "0xf"), 0) for name in ("row_mask", "bank_mask"))
    return sum(1 << lane for lane in range(count) if rows >> lane // 16 & 1 and banks >> lane % 16 // 4 & 1)


def _lane_pattern(name: str) -> Callable[[int, str], int | None] | None:
    """For each DPP control: which lane a lane reads, or None when that lies outside."""
    return {
        "quad_perm": lambda lane, text: (lane & ~3) + int(text.strip("[]").split(",")[lane & 3]),
        "dpp8": lambda lane, text: (lane & ~7) + int(text.strip("[]").split(",")[lane & 7]),
        "row_shl": lambda lane, text: lane + int(text) if lane % 16 + int(text) < 16 else None,
        "row_shr": lambda lane, text: lane - int(text) if lane % 16 >= int(text) else None,
        "row_ror": lambda lane, text: (lane & ~15) + (lane - int(text)) % 16,
        "row_mirror": lambda lane, text: lane ^ 15,
        "row_half_mirror": lambda lane, text: lane ^ 7,
        "row_share": lambda lane, text: (lane & ~15) + int(text),
        "row_newbcast": lambda lane, text: (lane & ~15) + int(text),
        "row_xmask": lambda lane, text: lane ^ int(text),
        "wave_shl": lambda lane, text: lane + 1 if lane < 63 else None,
        "wave_shr": lambda lane, text: lane - 1 if lane > 0 else None,
        "wave_rol": lambda lane, text: (lane + 1) % 64,
        "wave_ror": lambda lane, text: (lane - 1) % 64,
        "row_bcast": lambda lane, text: _broadcast(lane, int(text)),
    }.get(name)


def _broadcast(lane: int, last: int) -> int | None:
    """The last lane of the row (15) or of the first half of the wave (31), to what follows it."""
    if last == 15:
        return lane // 16 * 16 - 1 if lane >= 16 else None
    return 31 if lane >= 32 else None


def _sdwa(one: Instruction, registers: Registers, plain: Callable[[Instruction], str]) -> str:
    """Sources are parts of registers; the result goes to a part, and the rest is kept, cleared or sign-filled."""
    first = _source_index(one)
    operands = list(one.operands)
    parts = ["{"]
    for index, name in enumerate(("src0_sel", "src1_sel")):
        at = first + index
        if at >= len(operands) or name not in one.modifiers:
            continue
        text, negated, absolute, extended = modifiers_of(operands[at])
        offset, width = _FIELDS[one.modifiers[name]]
        value = registers.v32(text)
        variable = f"part{index}"
        cut = (
            f"extend({value} >> {offset}u, {width})"
            if extended
            else f"(({value} >> {offset}u) & {(1 << width) - 1:#x}u)"
        )
        parts.append(f"const U32 {variable} = (U32)({cut});")
        operands[at] = f"{'-' if negated else ''}{f'|{variable}|' if absolute else variable}"
    rest = {name: value for name, value in one.modifiers.items() if name not in _SDWA_MODIFIERS}
    inner = replace(one, operands=tuple(operands), modifiers=rest, encoding="")
    if one.modifiers.get("dst_sel", "DWORD") == "DWORD":
        parts.append(plain(inner))
    else:
        parts.append(_sdwa_write(one, inner, registers, plain))
    return " ".join([*parts, "}"])


def _sdwa_write(one: Instruction, inner: Instruction, registers: Registers, plain: Callable[[Instruction], str]) -> str:
    target = registers.v32(one.operands[0])
    offset, width = _FIELDS[one.modifiers["dst_sel"]]
    mask = (1 << width) - 1 << offset
    unused = one.modifiers.get("dst_unused", "UNUSED_PAD")
    value = f"((dual << {offset}u) & {mask:#x}u)"
    if unused == "UNUSED_PRESERVE":
        value = f"({value} | ({target} & {~mask & 0xFFFFFFFF:#x}u))"
    elif unused == "UNUSED_SEXT":
        value = f"((U32)extend(dual, {width}) << {offset}u)"
    body = plain(replace(inner, operands=("dual", *inner.operands[1:])))
    return f"U32 dual = {target}; {body} {registers.set_v32(one.operands[0], value)}"

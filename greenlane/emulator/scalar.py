"""Scalar instructions to C++."""

from __future__ import annotations

import re

from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers
from greenlane.emulator.scalar_table import OPERATIONS

_TYPES = {"u32": "u32", "i32": "i32", "u64": "u64", "i64": "i64", "f32": "float", "k16": "u32", "h16": "float"}
_COMPARISONS = {"eq": "==", "lg": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "neq": "!="}
_COMPARE = re.compile(r"s_cmpk?_(\w+?)_([iuf])(16|32|64)")
_BIT_COMPARE = re.compile(r"s_bitcmp([01])_b(32|64)")
_SAVE = re.compile(r"s_(\w+?)_(saveexec|wrexec)_b(32|64)")
_SAVED = {
    "and": "old & value",
    "or": "old | value",
    "xor": "old ^ value",
    "nand": "~(old & value)",
    "nor": "~(old | value)",
    "xnor": "~(old ^ value)",
    "and_not1": "value & ~old",
    "or_not1": "value | ~old",
    "and_not0": "~value & old",
    "or_not0": "~value | old",
    "andn2": "value & ~old",
    "orn2": "value | ~old",
    "andn1": "~value & old",
    "orn1": "~value | old",
}
_LOAD = re.compile(r"s_(?:buffer_)?load_(?:b(\d+)|dword(?:x(\d+))?|([iu])(8|16))")
# Scheduling, waiting and cache hints: without meaning where every access completes at once.
_IGNORED = re.compile(
    r"s_(nop|clause|delay_alu|waitcnt\w*|wait_\w+|sleep_var|setprio|set_inst_prefetch_distance|inst_prefetch|code_end|"
    r"dcache_\w+|icache_inv|gl1_inv|ttracedata\w*|version|barrier_signal|setkill|sethalt|prefetch_\w+|wakeup|incperflevel|decperflevel)"
)


def translate(one: Instruction, registers: Registers) -> str | None:
    """The C++ of a scalar instruction that is no branch; None for another kind of instruction."""
    name = one.mnemonic
    if name in OPERATIONS:
        return _operation(one, registers)
    if not name.startswith("s_"):
        return None
    if _IGNORED.fullmatch(name):
        return ";"
    for pattern, handler in ((_COMPARE, _compare), (_BIT_COMPARE, _compare_bit), (_SAVE, _save_exec), (_LOAD, _load)):
        if found := pattern.fullmatch(name):
            return handler(one, registers, found)
    return _other(one, registers)


def source(text: str, kind: str, registers: Registers) -> str:
    """A typed scalar operand."""
    negated = text.startswith("-") and not text[1:2].isdigit()
    absolute = text.startswith(("|", "-|"))
    text = text.lstrip("-").strip("|") if negated or absolute else text
    if kind in ("u64", "i64"):
        value = f"({kind})({registers.s64(text, kind)})"
    elif kind == "k16":
        value = f"{_sign_extended(text):#x}u"
    elif kind == "h16":
        value = f"(float)bits_as<f16>((u16)({registers.s32(text)}))"
    elif kind == "f32":
        value = f"float_of({registers.s32(text)})"
    else:
        value = f"({kind})({registers.s32(text)})"
    value = f"__builtin_fabsf({value})" if absolute else value
    return f"-({value})" if negated else value


def _sign_extended(text: str) -> int:
    value = int(text, 0) & 0xFFFF
    return (value | 0xFFFF0000) if value >> 15 else value


def _operation(one: Instruction, registers: Registers) -> str:
    operation = OPERATIONS[one.mnemonic]
    target, *sources = one.operands
    kind = _TYPES[operation.result]
    parts = [
        f"const {_TYPES[form]} {name} = {source(text, form, registers)};"
        for name, form, text in zip("abc", operation.sources, sources, strict=False)
    ]
    if re.search(r"\bd\b", operation.expression):
        parts.append(f"const {kind} d = {source(target, operation.result, registers)};")
    parts.append(f"const {kind} r = {operation.expression};")
    if operation.scc:
        parts.append(f"scc = {operation.scc};")
    if kind in ("u64", "i64"):
        parts.append(registers.set_s64(target, "(u64)r"))
    else:
        parts.append(registers.set_s32(target, "bits_of(r)" if kind == "float" else "(u32)r"))
    return f"{{ {' '.join(parts)} }}"


def _compare(one: Instruction, registers: Registers, found: re.Match[str]) -> str:
    relation, letter, width = found[1], found[2], found[3]
    immediate = one.mnemonic.startswith("s_cmpk")
    kind = f"{letter}{width}" if letter != "f" else ("f32" if width == "32" else "h16")
    left = source(one.operands[0], kind, registers)
    right = source(one.operands[1], kind, registers)
    if immediate and letter == "i":
        right = f"(i32){_sign_extended(one.operands[1]):#x}u"
    return f"scc = {_relation(relation, left, right)};"


def _compare_bit(one: Instruction, registers: Registers, found: re.Match[str]) -> str:
    word = registers.s32(one.operands[0]) if found[2] == "32" else registers.s64(one.operands[0])
    return f"scc = ({word} >> ({registers.s32(one.operands[1])} & {int(found[2]) - 1}) & 1) == {found[1]};"


def _relation(relation: str, left: str, right: str) -> str:
    if relation in ("o", "u"):
        return f"{'' if relation == 'u' else '!'}__builtin_isunordered({left}, {right})"
    if relation in _COMPARISONS:
        if relation == "lg" and "float" in left:
            return f"__builtin_islessgreater({left}, {right})"
        return f"{left} {_COMPARISONS[relation]} {right}"
    if relation[:1] == "n" and relation[1:] in _COMPARISONS:
        return f"!({_relation(relation[1:], left, right)})"
    raise UnknownInstruction(f"s_cmp_{relation}")


def _save_exec(one: Instruction, registers: Registers, found: re.Match[str]) -> str:
    operation = _SAVED.get(found[1])
    if operation is None:
        raise UnknownInstruction(one.text)
    wide = found[3] == "64"
    read, write, kind = (registers.s64, registers.set_s64, "u64") if wide else (registers.s32, registers.set_s32, "u32")
    mask = "exec" if wide else "exec_lo"
    kept = "fresh" if found[2] == "wrexec" else "old"
    return (
        f"{{ const {kind} value = {read(one.operands[1])}, old = {read(mask)}, fresh = {operation}; "
        f"{write(mask, 'fresh')} {write(one.operands[0], kept)} scc = fresh != 0; }}"
    )


def _load(one: Instruction, registers: Registers, found: re.Match[str]) -> str:
    if "buffer" in one.mnemonic:
        raise UnknownInstruction(one.text)
    target, base, offset = one.operands
    address = f"{registers.s64(base)} + {_load_offset(offset, one, registers)}"
    if found[3]:
        kind = f"{found[3]}{found[4]}"
        value = f"(u32)(i32)scalar_load<{kind}>(wave, {address}, {int(found[4]) // 8}, {one.address:#x})"
        return registers.set_s32(target, value)
    count = int(found[1]) // 32 if found[1] else int(found[2] or 1)
    names = registers.names(target, count)
    loads = " ".join(
        f"{name} = scalar_load<u32>(wave, from + {4 * index}, {4 * (count - index)}, {one.address:#x});"
        for index, name in enumerate(names)
    )
    return f"{{ const u64 from = ({address}) & ~3ull; {loads} }}"


def _load_offset(offset: str, one: Instruction, registers: Registers) -> str:
    more = int(one.modifiers.get("offset", "0"), 0)
    if offset == "null":
        return f"(i64){more}"
    if offset.startswith("s") or offset == "m0":
        return f"(u64){registers.s32(offset)} + (i64){more}"
    return f"(i64){int(offset, 0) + more}"


def _other(one: Instruction, registers: Registers) -> str:
    name, operands = one.mnemonic, one.operands
    if name in ("s_barrier", "s_barrier_wait"):
        return "wave.host->barrier(&wave);"
    if name == "s_getpc_b64":
        return registers.set_s64(operands[0], f"wave.image + {one.end:#x}")
    if name == "s_sleep":
        return "wave.host->pause(&wave);"
    if name == "s_trap":
        return f"wave.host->stop(&wave, Finding::kTrap, {one.address:#x});"
    if name in ("s_memtime", "s_memrealtime"):
        return registers.set_s64(operands[0], "wave.host->clock()")
    if name == "s_sendmsg_rtn_b64":
        return registers.set_s64(operands[0], "wave.host->clock()")
    if name == "s_sendmsg_rtn_b32":  # the doorbell, which only the end of a trap asks for
        return registers.set_s32(operands[0], "0u")
    if name in ("s_sendmsg", "s_sendmsghalt") and re.search("MSG_(DEALLOC_VGPRS|INTERRUPT)", one.text):
        return ";"
    if name == "s_getreg_b32":
        return registers.set_s32(operands[0], "wave.host->clock()" if "SHADER_CYCLES" in one.text else "0u")
    return _mode(one)


def _mode(one: Instruction) -> str:
    """Writes to the MODE register: denormals are always kept; other rounding than to nearest is not done."""
    name = one.mnemonic
    if name == "s_denorm_mode" or (
        name.startswith("s_setreg") and re.search(r"HW_REG(_WAVE)?_MODE, 4, [24]\)", one.text)
    ):
        return ";"
    if name == "s_setreg_imm32_b32" and re.search(r"HW_REG(_WAVE)?_(SCHED_MODE|SHADER_CYCLES)", one.text):
        return ";"
    raise UnknownInstruction(one.text)

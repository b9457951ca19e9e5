"""Vector instructions with more than one result, with scalar results, or with shapes of their own."""

from __future__ import annotations

import re
from collections.abc import Callable

from greenlane.emulator import lanes
from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers, modifiers_of, vector_type
from greenlane.emulator.vector import op_sel

_COMPARE = re.compile(r"v_cmp(x?)_(\w+?)_([iuf])(16|32|64)")
_RELATIONS = {
    "eq": "a == b",
    "ne": "a != b",
    "lg": "(a < b) | (a > b)",
    "gt": "a > b",
    "ge": "a >= b",
    "lt": "a < b",
    "le": "a <= b",
    "neq": "a != b",
    "nlg": "~((a < b) | (a > b))",
    "ngt": "~(a > b)",
    "nge": "~(a >= b)",
    "nlt": "~(a < b)",
    "nle": "~(a <= b)",
    "o": "(a == a) & (b == b)",
    "u": "(a != a) | (b != b)",
}
_CARRY = re.compile(r"v_(add|sub|subrev)(c|b)?_co(_ci)?_u32|v_(subb|subbrev|addc)_co_u32")


def translate(one: Instruction, registers: Registers) -> str | None:
    """The C++ of such an instruction; None for another."""
    if one.mnemonic in ("v_nop", "v_pipeflush"):
        return ";"
    if found := _COMPARE.fullmatch(one.mnemonic):
        return lanes.around(one, registers, lambda plain: _compare(plain, registers, found))
    if _CARRY.fullmatch(one.mnemonic):
        return lanes.around(one, registers, lambda plain: _carry(plain, registers))
    handler = _HANDLERS.get(one.mnemonic)
    return handler(one, registers) if handler else None


def _compare(one: Instruction, registers: Registers, found: re.Match[str]) -> str:
    to_exec, relation, letter, width = found[1] == "x", found[2], found[3], found[4]
    kind = letter + width
    left, right = one.operands[-2:]
    target = "EXEC" if to_exec and len(one.operands) == 2 else one.operands[0]
    selected = op_sel(one, "op_sel", 3)
    operands = f"const {vector_type(kind)} a = {registers.source(left, kind, selected[0])};"
    if relation in ("class", "class_f", "t", "f", "tru"):
        truth = {"t": "kAllLanes", "tru": "kAllLanes", "f": "Mask{0}"}.get(relation)
        truth = (
            truth
            or f"in_class(a, {registers.v32(right) if width != '16' else _class_set(right, selected[1], registers)})"
        )
    else:
        operands += f" const {vector_type(kind)} b = {registers.source(right, kind, selected[1])};"
        truth = f"mask_of({_RELATIONS[relation]})"
    if to_exec:
        mask = "exec_lo" if registers.lanes == 32 else "exec"
        write = registers.set_mask(mask, f"({truth}) & {registers.exec}")
        if registers.generation == 9 and target not in ("EXEC", "exec"):
            write += registers.set_mask(target, registers.mask(mask))
    else:
        write = registers.set_mask(target, f"({truth}) & {registers.exec}")
    return f"{{ {operands} {write} }}"


def _class_set(text: str, upper: bool, registers: Registers) -> str:
    return f"convert<U32>({registers.v16(text, 'u16', upper)})"


def _carry(one: Instruction, registers: Registers) -> str:
    """Addition and subtraction with a carry out and, in some, a carry in."""
    name = one.mnemonic
    target, carry_out, left, right, *rest = one.operands
    carries_in = "_ci_" in name or name.startswith(("v_addc", "v_subb"))
    a, b = registers.source(left, "u32"), registers.source(right, "u32")
    if name.startswith(("v_subrev", "v_subbrev")):
        a, b = b, a
    carry = f"(U32)lanes_of({registers.mask(rest[0] if rest else ('vcc_lo' if registers.lanes == 32 else 'vcc'))}) & 1u"
    parts = [f"const U32 a = {a}, b = {b}, c = {carry if carries_in else 'splat(0)'};"]
    if name.startswith("v_add"):
        parts.append("const U32 sum = a + b + c; const Mask out = mask_of((sum < a) | ((sum == a) & (c != 0u)));")
    else:
        parts.append("const U32 sum = a - b - c; const Mask out = mask_of((a < b) | ((a == b) & (c != 0u)));")
    if "clamp" in one.modifiers:
        raise UnknownInstruction(one.text, "clamp")
    parts.append(registers.set_v32(target, "sum"))
    parts.append(registers.set_mask(carry_out, f"out & {registers.exec}"))
    return f"{{ {' '.join(parts)} }}"


def _multiply_add_64(one: Instruction, registers: Registers) -> str:
    target, carry, left, right, addend = one.operands
    signed = "i32" in one.mnemonic
    kind, wide = ("i32", "I64") if signed else ("u32", "U64")
    product = f"convert<{wide}>({registers.source(left, kind)}) * convert<{wide}>({registers.source(right, kind)})"
    parts = [f"const {wide} product = {product}, addend = {registers.source(addend, kind[0] + '64')};"]
    parts.append("const U64 total = (U64)(product + addend);")
    if carry != "null" and not signed:
        parts.append(registers.set_mask(carry, f"mask_of(total < addend) & {registers.exec}"))
    elif carry != "null":
        negative = "(addend < 0ll) & (product < 0ll) & ((I64)total >= 0ll)"
        flag = f"({negative}) | ((addend >= 0ll) & (product >= 0ll) & ((I64)total < 0ll))"
        parts.append(registers.set_mask(carry, f"mask_of({flag}) & {registers.exec}"))
    parts.append(registers.set_v64(target, "total"))
    return f"{{ {' '.join(parts)} }}"


def _div_scale(one: Instruction, registers: Registers) -> str:
    target, flags, value, denominator, numerator = one.operands
    kind = one.mnemonic.rpartition("_")[2]
    sources = ", ".join(registers.source(text, kind) for text in (value, denominator, numerator))
    written = registers.set_vector(target, kind, "scaled_value")
    return (
        f"{{ Mask flags; const {vector_type(kind)} scaled_value = div_scale({sources}, flags); "
        f"{written} {registers.set_mask(flags, f'flags & {registers.exec}')} }}"
    )


def _read_first_lane(one: Instruction, registers: Registers) -> str:
    return registers.set_s32(one.operands[0], f"read_first_lane({registers.v32(one.operands[1])}, {registers.exec})")


def _read_lane(one: Instruction, registers: Registers) -> str:
    target, source, lane = one.operands
    return registers.set_s32(target, f"read_lane({registers.v32(source)}, {registers.s32(lane)})")


def _write_lane(one: Instruction, registers: Registers) -> str:
    target, value, lane = one.operands
    name = registers.v32(target)
    return f"{name} = write_lane({name}, {registers.s32(value)}, {registers.s32(lane)});"


def _swap(one: Instruction, registers: Registers) -> str:
    first, second = one.operands
    if one.mnemonic == "v_swap_b16":
        values = f"const U16 x = {registers.v16(first, 'u16')}, y = {registers.v16(second, 'u16')};"
        return f"{{ {values} {registers.set_v16(first, 'y')} {registers.set_v16(second, 'x')} }}"
    values = f"const U32 x = {registers.v32(first)}, y = {registers.v32(second)};"
    return f"{{ {values} {registers.set_v32(first, 'y')} {registers.set_v32(second, 'x')} }}"


def _permlane(one: Instruction, registers: Registers) -> str:
    target, data, *selectors = one.operands
    if one.mnemonic == "v_permlane64_b32":
        return registers.set_v32(target, f"permlane64({registers.v32(data)})")
    fetch, zero = (("true" if bit else "false") for bit in op_sel(one, "op_sel", 3)[:2])
    other = "true" if "permlanex16" in one.mnemonic else "false"
    values = f"{registers.v32(target)}, {registers.v32(data)}"
    tail = f"{other}, {fetch}, {zero}, {registers.exec}"
    if "_var_" in one.mnemonic:
        return registers.set_v32(target, f"permlane16_var({values}, {registers.v32(selectors[0])}, {tail})")
    chosen = ", ".join(registers.s32(text) for text in selectors)
    return registers.set_v32(target, f"permlane16({values}, {chosen}, {tail})")


def _dot_mixed_signs(one: Instruction, registers: Registers) -> str:
    """neg_lo says which operand is signed."""
    bits = 8 if "iu8" in one.mnemonic else 4
    signs = ", ".join("true" if bit else "false" for bit in op_sel(one, "neg_lo", 2)[:2])
    function = "dot_saturating" if "clamp" in one.modifiers else "dot"
    values = ", ".join(registers.v32(text) for text in one.operands[1:])
    return registers.set_v32(one.operands[0], f"{function}<{bits}, {signs}>({values})")


def _fma_mix(one: Instruction, registers: Registers) -> str:
    """op_sel_hi says which sources are halves, op_sel which half."""
    target, *sources = one.operands
    upper, halves = op_sel(one, "op_sel", 3), op_sel(one, "op_sel_hi", 3)
    absolute = op_sel(one, "neg_hi", 3)
    parts = []
    for index, text in enumerate(sources):
        plain, negated, magnitude, _ = modifiers_of(text)
        value = (
            f"convert<F32>({registers.source(plain, 'f16', upper[index])})"
            if halves[index]
            else registers.source(plain, "f32")
        )
        value = f"magnitude({value})" if magnitude or absolute[index] else value
        parts.append(f"neg({value})" if negated else value)
    value = f"fma({', '.join(parts)})"
    value = f"clamped({value})" if "clamp" in one.modifiers else value
    if one.mnemonic in ("v_fma_mix_f32", "v_mad_mix_f32"):
        return registers.set_vector(target, "f32", value)
    return registers.set_v16(target, f"(U16)convert<F16>({value})", upper="mixhi" in one.mnemonic)


_HANDLERS: dict[str, Callable[[Instruction, Registers], str]] = {
    "v_mad_u64_u32": _multiply_add_64,
    "v_mad_i64_i32": _multiply_add_64,
    "v_mad_co_u64_u32": _multiply_add_64,
    "v_mad_co_i64_i32": _multiply_add_64,
    "v_div_scale_f32": _div_scale,
    "v_div_scale_f64": _div_scale,
    "v_readfirstlane_b32": _read_first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_swap_b32": _swap,
    "v_swap_b16": _swap,
    "v_permlane16_b32": _permlane,
    "v_permlanex16_b32": _permlane,
    "v_permlane16_var_b32": _permlane,
    "v_permlanex16_var_b32": _permlane,
    "v_permlane64_b32": _permlane,
    "v_dot4_i32_iu8": _dot_mixed_signs,
    "v_dot8_i32_iu4": _dot_mixed_signs,
    "v_fma_mix_f32": _fma_mix,
    "v_fma_mixlo_f16": _fma_mix,
    "v_fma_mixhi_f16": _fma_mix,
}

"""Vector instructions that the table describes, with their modifiers (neg, abs, clamp, omod, op_sel, DPP), to C++."""

from __future__ import annotations

import re

from greenlane.emulator import lanes
from greenlane.emulator.disassembly import Instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.operands import Registers, vector_type
from greenlane.emulator.vector_table import OPERATIONS, PACKED, Operation

_OUTPUT_SCALE = {"mul:2": "2.0", "mul:4": "4.0", "div:2": "0.5"}
_KNOWN = {"clamp", "mul", "div", "op_sel", "op_sel_hi", "neg_lo", "neg_hi"}
# On gfx9 a 16-bit result clears the upper half of its register, except for these.
_KEEPS_UPPER_HALF = re.compile(r"v_(fma|mad|div_fixup|min3|max3|med3)_(?!legacy)\w+16")


def translate(one: Instruction, registers: Registers) -> str | None:
    """The C++ of an instruction in the table; None for another."""
    if one.mnemonic in PACKED:
        return _packed(one, registers)
    operation = OPERATIONS.get(one.mnemonic)
    if operation is None:
        return None
    return lanes.around(one, registers, lambda plain: _plain(plain, operation, registers))


def _plain(one: Instruction, operation: Operation, registers: Registers) -> str:
    _refuse_unknown(one)
    target, *sources = one.operands
    selected = op_sel(one, "op_sel", len(sources) + 1)
    parts = [
        f"const {_type_of(kind)} {name} = {_source(text, kind, selected[index], registers)};"
        for index, (name, kind, text) in enumerate(
            zip("abc"[: len(operation.sources)], operation.sources, _with_condition(sources, operation), strict=True)
        )
    ]
    if re.search(r"\bd\b", operation.expression):
        parts.append(
            f"const {vector_type(operation.result)} d = {registers.source(target, operation.result, selected[-1])};"
        )
    value = modified(one, operation)
    zero_rest = registers.generation == 9 and not _KEEPS_UPPER_HALF.fullmatch(one.mnemonic) and not selected[-1]
    parts.append(registers.set_vector(target, operation.result, value, selected[-1], zero_rest))
    return f"{{ {' '.join(parts)} }}"


def _with_condition(sources: list[str], operation: Operation) -> list[str]:
    """v_cndmask in its short form takes vcc without naming it."""
    return [*sources, "vcc"] if len(sources) < len(operation.sources) else sources


def _type_of(kind: str) -> str:
    return "Mask" if kind == "mask" else vector_type(kind)


def _source(text: str, kind: str, upper: bool, registers: Registers) -> str:
    if kind == "mask":
        return "VCC" if text == "vcc" and registers.lanes == 32 else registers.mask(text)
    return registers.source(text, kind, upper)


def modified(one: Instruction, operation: Operation) -> str:
    """The expression with output scaling and clamping around it."""
    value = operation.expression
    floating = operation.result[0] == "f"
    kind = vector_type(operation.result)
    for name in ("mul", "div"):
        if name in one.modifiers:
            factor = _OUTPUT_SCALE[f"{name}:{one.modifiers[name]}"]
            value = f"({kind})(({value}) * ({kind})({factor}))"
    if "clamp" not in one.modifiers:
        return value
    if floating:
        return f"clamped(({kind})({value}))"
    if operation.saturating is None:
        raise UnknownInstruction(one.text, "clamp")
    return operation.saturating


def op_sel(one: Instruction, name: str, count: int, default: int = 0) -> list[bool]:
    """One bit per source and, last, per destination."""
    text = one.modifiers.get(name)
    if not text:
        return [bool(default)] * count
    bits = [bit == "1" for bit in text.strip("[]").split(",")]
    return bits if len(bits) >= count else bits + [False] * (count - len(bits))


def _refuse_unknown(one: Instruction) -> None:
    unknown = set(one.modifiers) - _KNOWN
    if unknown:
        raise UnknownInstruction(one.text, f"modifier {', '.join(sorted(unknown))}")


def _packed(one: Instruction, registers: Registers) -> str:
    """Both halves read before either is written; op_sel picks what the low half reads, op_sel_hi the high half."""
    operation = OPERATIONS[PACKED[one.mnemonic]]
    wide = operation.result in ("f32", "u32")
    _refuse_unknown(one)
    target, *sources = one.operands
    low_part = _half(one, operation, registers, target, sources, high=False)
    high_part = _half(one, operation, registers, target, sources, high=True)
    kind = vector_type(operation.result)
    if wide:
        first, second = registers.names(target)[:2]
        write = f"{registers.set_v32(first, '(U32)low_part')} {registers.set_v32(second, '(U32)high_part')}"
    else:
        write = registers.set_v32(target, "halves((U16)low_part, (U16)high_part)")
    return f"{{ const {kind} low_part = {low_part}; const {kind} high_part = {high_part}; {write} }}"


def _half(
    one: Instruction, operation: Operation, registers: Registers, target: str, sources: list[str], *, high: bool
) -> str:
    wide = operation.result in ("f32", "u32")
    if one.mnemonic == "v_pk_mov_b32":  # the low half takes the first source, the high half the second
        chosen = op_sel(one, "op_sel", 2)
        index = 1 if high else 0
        return _wide_half(sources[index], "u32", chosen[index], registers)
    count = len(sources)
    default = 1 if high else 0
    chosen = op_sel(one, "op_sel_hi" if high else "op_sel", count, default)
    negated = op_sel(one, "neg_hi" if high else "neg_lo", count)
    values = {}
    for index, (name, kind, text) in enumerate(zip("abc"[: len(sources)], operation.sources, sources, strict=True)):
        if wide:
            value = _wide_half(text, kind, chosen[index], registers)
        else:
            value = _narrow_half(text, kind, chosen[index], registers)
        values[name] = f"neg({value})" if negated[index] else value
    if re.search(r"\bd\b", operation.expression):
        values["d"] = _narrow_half(target, operation.result, high, registers)
    return re.sub(r"\b([abcd])\b", lambda found: f"({values[found[1]]})", modified(one, operation))


def _wide_half(text: str, kind: str, second: bool, registers: Registers) -> str:
    """One register of a pair; a constant serves both."""
    try:
        names = registers.names(text)
    except UnknownInstruction:
        return f"({vector_type(kind)})(splat({registers.s32(text)}))"
    name = names[1] if second and len(names) > 1 else names[0]
    return f"({vector_type(kind)})({name if registers.is_vector(text) else f'splat({name})'})"


def _narrow_half(text: str, kind: str, second: bool, registers: Registers) -> str:
    """A float constant stands in the low half of a word whose high half is zero; an integer is sign-extended."""
    if registers.is_vector(text) or not re.fullmatch(r"-?\d+\.\d+", text):
        return f"({vector_type(kind)})({registers.v16(text, 'u16', second)})"
    return f"({vector_type(kind)})({'(U16)(0)' if second else registers.v16(text, 'f16')})"

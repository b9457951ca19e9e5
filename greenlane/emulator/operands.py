"""Operands of instructions as C++ expressions over the registers of one wave."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from greenlane.emulator.errors import UnknownInstruction

_RANGE = re.compile(r"(s|v|a|ttmp)\[(\d+):(\d+)\]")
_SINGLE = re.compile(r"(s|v|a|ttmp)(\d+)(\.[lh])?")
_INTEGER = re.compile(r"-?\d+|0x[0-9a-f]+")
_FLOAT = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?")
_PAIRS = {
    "vcc": ("vcc_lo", "vcc_hi"),
    "exec": ("exec_lo", "exec_hi"),
    "flat_scratch": ("flat_scratch_lo", "flat_scratch_hi"),
}
_NAMED = {
    "vcc_lo",
    "vcc_hi",
    "exec_lo",
    "exec_hi",
    "m0",
    "flat_scratch_lo",
    "flat_scratch_hi",
    "xnack_mask_lo",
    "xnack_mask_hi",
}
_CONSTANT = {
    "null": "0u",
    "off": "0u",
    "src_scc": "(u32)scc",
    "scc": "(u32)scc",
    "src_execz": "(u32)(EXEC == 0)",
    "src_vccz": "(u32)(VCC == 0)",
}
# High halves of the bases of LDS and scratch in flat addresses, and how large they may be.
_APERTURES = {
    "src_shared_base": "kSharedAperture",
    "src_private_base": "kPrivateAperture",
    "src_shared_limit": "kSharedAperture + 0xffffffff",
    "src_private_limit": "kPrivateAperture + 0xffffffff",
}
# neg and abs on operands that are only moved (v_cndmask) work on the sign bit.
_SIGN = {"u32": "0x80000000u", "u16": "(u16)0x8000"}
_BELOW_SIGN = {"u32": "0x7fffffffu", "u16": "(u16)0x7fff"}
_LOCALS = {
    "dual",
    "moved",
    "part0",
    "part1",
}  # variables that stand for registers inside DPP, SDWA and dual instructions
_VECTOR = {
    "u32": "U32",
    "i32": "I32",
    "f32": "F32",
    "u64": "U64",
    "i64": "I64",
    "f64": "F64",
    "u16": "U16",
    "i16": "I16",
    "f16": "F16",
}


@dataclass
class Registers:
    """Which registers a kernel uses, and how each operand reads and is written. `exec` names the mask in force."""

    lanes: int
    generation: int  # 9, 11 or 12
    scalars: set[str] = field(default_factory=set)
    vectors: set[str] = field(default_factory=set)
    exec: str = "EXEC"

    # Scalars

    def names(self, text: str, count: int | None = None) -> list[str]:
        """The 32-bit registers that an operand covers, low first."""
        if text in _PAIRS:
            return [self._scalar(name) for name in _PAIRS[text]]
        if found := _RANGE.fullmatch(text):
            numbers = range(int(found[2]), int(found[3]) + 1)
            return [self._register(found[1], number) for number in numbers]
        if found := _SINGLE.fullmatch(text):
            numbers = range(int(found[2]), int(found[2]) + (count or 1))
            return [self._register(found[1], number) for number in numbers]
        if text in _NAMED:
            return [self._scalar(text)]
        raise UnknownInstruction(text, "operand")

    def s32(self, text: str) -> str:
        """A scalar as u32."""
        if text in _CONSTANT:
            return _CONSTANT[text]
        if text in _APERTURES:
            return f"(u32)({_APERTURES[text]})"
        if text in _NAMED or _SINGLE.fullmatch(text):
            return self.names(text.removesuffix(".l").removesuffix(".h"))[0]
        if _INTEGER.fullmatch(text):
            return f"{int(text, 0) & 0xFFFFFFFF:#x}u"
        if _FLOAT.fullmatch(text):
            return f"{_float_bits(text, '<f', '<I'):#x}u"
        raise UnknownInstruction(text, "operand")

    def s64(self, text: str, kind: str = "u64") -> str:
        """A scalar as u64; `kind` decides how a 32-bit literal is widened."""
        if text in _PAIRS or _RANGE.fullmatch(text):
            low, high = self.names(text)[:2]
            return f"pair({low}, {high})"
        if text in _APERTURES:
            return f"(u64)({_APERTURES[text]})"
        if _INTEGER.fullmatch(text):
            return f"{_widened(text, kind):#x}ull"
        if _FLOAT.fullmatch(text):
            return f"{_float_bits(text, '<d', '<Q'):#x}ull"
        return f"(u64){self.s32(text)}"

    def mask(self, text: str) -> str:
        """One bit per lane."""
        return self.s32(text) if self.lanes == 32 else self.s64(text)

    def set_s32(self, text: str, value: str) -> str:
        if text == "null":
            return f"(void)({value});"
        return f"{self.names(text)[0]} = {value};"

    def set_s64(self, text: str, value: str) -> str:
        if text == "null":
            return f"(void)({value});"
        low, high = self.names(text)[:2]
        return f"{{ const u64 wide = {value}; {low} = (u32)wide; {high} = (u32)(wide >> 32); }}"

    def set_mask(self, text: str, value: str) -> str:
        return self.set_s32(text, value) if self.lanes == 32 else self.set_s64(text, value)

    # Vectors

    def is_vector(self, text: str) -> bool:
        return text[:1] in "va" and bool(_SINGLE.fullmatch(text) or _RANGE.fullmatch(text))

    def v32(self, text: str) -> str:
        """A 32-bit operand over all lanes, without modifiers."""
        if text in _LOCALS:
            return text
        if self.is_vector(text):
            return self.names(text.partition(".")[0])[0]
        return f"splat({self.s32(text)})"

    def v64(self, text: str, kind: str = "u64") -> str:
        if self.is_vector(text):
            low, high = self.names(text)[:2]
            return f"join({low}, {high})"
        if kind == "f64" and text.startswith("0x"):
            return f"splat64({int(text, 16) << 32:#x}ull)"
        if kind == "f64" and _INTEGER.fullmatch(text):
            return f"splat64({int(text) & (1 << 64) - 1:#x}ull)"
        return f"splat64({self.s64(text, kind)})"

    def v16(self, text: str, kind: str, upper: bool = False) -> str:
        """The half of a register that the operand names (`.h`), or that `upper` (op_sel) does."""
        if _FLOAT.fullmatch(text) and kind == "f16":
            return f"(U16)({_float_bits(text, '<e', '<H'):#x})"
        half = "high16" if text.endswith(".h") or upper else "low16"
        return f"{half}({self.v32(text)})"

    def source(self, text: str, kind: str, upper: bool = False) -> str:
        """A typed vector operand with its own neg, abs and sext modifiers."""
        text, negated, absolute, extended = modifiers_of(text)
        if kind in ("u16", "i16", "f16"):
            value = self.v16(text, kind, upper)
        elif kind in ("u64", "i64", "f64"):
            value = self.v64(text, kind)
        else:
            value = self.v32(text)
        value = f"({_VECTOR[kind]})({value})"
        if absolute:
            value = f"magnitude({value})" if kind[0] == "f" else f"({value} & {_BELOW_SIGN[kind]})"
        if negated:
            value = f"neg({value})" if kind[0] == "f" else f"({value} ^ {_SIGN[kind]})"
        if extended:
            raise UnknownInstruction(text, "sext outside of SDWA")
        return value

    def set_v32(self, text: str, value: str) -> str:
        name = text if text == "dual" else self.names(text)[0]
        return f"{name} = select({self.exec}, {value}, {name});"

    def set_v64(self, text: str, value: str) -> str:
        low, high = self.names(text)[:2]
        return f"{{ const U64 wide = {value}; {self.set_v32(low, 'low(wide)')} {self.set_v32(high, 'high(wide)')} }}"

    def set_v16(self, text: str, value: str, upper: bool = False, zero_rest: bool = False) -> str:
        name = text if text == "dual" else self.names(text.partition(".")[0])[0]
        if text.endswith(".h") or upper:
            merged = f"with_high16({name}, {value})"
        else:
            merged = f"convert<U32>({value})" if zero_rest else f"with_low16({name}, {value})"
        return f"{name} = select({self.exec}, {merged}, {name});"

    def set_vector(self, text: str, kind: str, value: str, upper: bool = False, zero_rest: bool = False) -> str:
        """Writes a typed result to the active lanes."""
        if kind in ("u16", "i16", "f16"):
            return self.set_v16(text, f"(U16)({value})", upper, zero_rest)
        if kind in ("u64", "i64", "f64"):
            return self.set_v64(text, f"(U64)({value})")
        return self.set_v32(text, f"(U32)({value})")

    def _scalar(self, name: str) -> str:
        self.scalars.add(name)
        return name

    def _register(self, bank: str, number: int) -> str:
        name = f"{bank}{number}"
        (self.vectors if bank in "va" else self.scalars).add(name)
        return name


def vector_type(kind: str) -> str:
    return _VECTOR[kind]


def modifiers_of(text: str) -> tuple[str, bool, bool, bool]:
    """
    >>> modifiers_of("-|v1|"), modifiers_of("-1.0"), modifiers_of("neg(0.5)"), modifiers_of("sext(v2)")
    (('v1', True, True, False), ('-1.0', False, False, False), ('0.5', True, False, False), ('v2', False, False, True))
    """
    negated = absolute = extended = False
    if text.startswith("-") and not (_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)):
        negated, text = True, text[1:]
    for prefix in ("neg(", "abs(", "sext("):
        if text.startswith(prefix):
            negated |= prefix == "neg("
            absolute |= prefix == "abs("
            extended |= prefix == "sext("
            text = text[len(prefix) : -1]
    if text.startswith("|"):
        absolute, text = True, text[1:-1]
    return text, negated, absolute, extended


def _widened(text: str, kind: str) -> int:
    value = int(text, 0)
    if text.startswith("0x") and kind == "i64" and value >> 31 == 1:
        value -= 1 << 32
    return value & (1 << 64) - 1


def _float_bits(text: str, form: str, as_integer: str) -> int:
    bits: int = struct.unpack(as_integer, struct.pack(form, float(text)))[0]
    if text in ("0.15915494", "0.15915494309189532", "0.1592", "0.15915494309189533"):  # 1 / (2 pi), an inline constant
        return {"<f": 0x3E22F983, "<d": 0x3FC45F306DC9C882, "<e": 0x3118}[form]
    return bits

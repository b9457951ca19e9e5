"""Which instructions are tried against the pseudo-code, how each is written, and which bits of its result count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# What the pseudo-code says in another way than the hardware does it, each with a model of its own in models.py or a
# sample, and what has no value to compare.
LEFT_OUT = {
    "rndne": "floor(x + 0.5) is rounded before the floor",
    "sin_": "the pseudo-code rounds the turns to radians first",
    "cos_": "the pseudo-code rounds the turns to radians first",
    "trig_preop": "1201 bits of 2/pi",
    "div_scale": "compares with an undefined denormal",
    "div_fmas": "scales by 2**32 where the hardware scales by 2**64",
    "permlane": "moves between lanes",
    "readlane": "moves between lanes",
    "writelane": "moves between lanes",
    "readfirstlane": "moves between lanes",
    "mbcnt": "moves between lanes",
    "saveexec": "changes the lanes that run",
    "wrexec": "changes the lanes that run",
    "ldexp": "2.0 ** n has no format",
    "cvt_off": "a table that it doesn't print",
    "getpc": "jumps",
    "setpc": "jumps",
    "swappc": "jumps",
    "movrel": "no register by number",
    "wmma": "a matrix",
    "swmmac": "a matrix",
    "mfma": "a matrix",
    "smfmac": "a matrix",
}
FAMILIES = ("VOP1Op", "VOP2Op", "VOP3Op", "VOP3POp", "VOP3SDOp", "VOPCOp", "SOP1Op", "SOP2Op", "SOPCOp", "SOPKOp")
# Units in the last place by which the emulator's approximations may part from exact results.
TOLERANCES = {"v_exp_f32": 2, "v_log_f32": 1, "v_rsq_f32": 2, "v_rcp_f32": 1, "v_sqrt_f32": 1, "v_rcp_iflag_f32": 1,
              "v_rsq_f64": 2, "v_rcp_f64": 1, "v_sqrt_f64": 1, "v_exp_f16": 1, "v_log_f16": 1, "v_rsq_f16": 1,
              "v_s_exp_f32": 2, "v_s_log_f32": 1, "v_s_rsq_f32": 2, "v_s_rcp_f32": 1, "v_s_sqrt_f32": 1}  # fmt: skip


@dataclass(frozen=True)
class Probe:
    """An instruction with the lines that bring its operands and take its result."""

    name: str
    family: str
    code: str  # pseudo-code
    lines: tuple[str, ...]
    sources: tuple[str, ...]  # type of S0, S1, S2
    result: str  # type of what is compared: of D, or `vcc`, or `scc`

    @property
    def scalar(self) -> bool:
        return self.family.startswith("SOP")


def source_types(code: str) -> tuple[str, ...]:
    """
    >>> source_types("D0.f32 = fma(S0.f32, S1.f32, D0.f32)")
    ('f32', 'f32')
    >>> source_types("D0.u64 = (S1.u64 << S0[5 : 0].u32)")
    ('b32', 'u64')
    """
    count = max([int(number) for number in re.findall(r"\bS(\d)\b", code)], default=-1) + 1
    types = []
    for i in range(count):
        found = re.findall(rf"\bS{i}\.([a-z]+\d+)", code)
        halves = re.findall(rf"\bS{i}\[\d+ : \d+\]\.(b?f16)", code)
        wide = [kind for kind in found if kind.endswith("64")] or (["b64"] if f"S{i}[63 : 32]" in code else [])
        types.append((wide or (halves and ["pair"]) or found or ["b32"])[0])
    return tuple(types)


def result_type(code: str) -> str:
    if re.search(r"D0\.(b|u)128", code):
        return "none"
    if "16'0, tmp.f16 }" in code:
        return "f16"
    if found := re.search(r"\bD0\.([a-z]+\d+)\s*(?:\[[^\]]*\]\s*)?[-+]?=", code) or re.search(r"D0\.(u64|i64)", code):
        wide = re.search(r"\.f32\s*=", code) and found[1] == "b64"
        return "pair32" if wide else "pair" if found[1] == "b32" and ".f16 =" in code else found[1]
    if re.search(r"\bD0\s*=|D0\[\d+ : \d+\]", code):
        return "pair" if "f16 =" in code or "bf16 =" in code else "b32"
    return "scc" if re.search(r"\bSCC\s*=", code) else "vcc" if re.search(r"D0\.u64\[laneId\]", code) else "none"


def probes(library: Mapping[tuple[str, str], str], *, wave64: bool) -> list[Probe]:
    found: dict[str, Probe] = {}
    for (family, name), code in library.items():
        mnemonic = re.sub(r"_e(32|64)$", "", name)
        if family not in FAMILIES or any(word in name for word in LEFT_OUT) or mnemonic in found:
            continue
        for made in made_of(mnemonic, family, code, wave64=wave64):
            found.setdefault(made.name, made)
    return list(found.values())


def made_of(name: str, family: str, code: str, *, wave64: bool) -> list[Probe]:
    sources, result = source_types(code), result_type(code)
    if name.startswith("v_cmp"):
        result = "vcc" if "cmpx" not in name else "none"
    if result == "none" or len(sources) > 3 or "MEM[" in code or "VGPR[" in code or "declare S " in code:
        return []
    if family.startswith("SOP"):
        return scalar_probes(name, family, code, sources, result)
    return [vector_probe(name, family, code, sources, result, wave64=wave64)]


def vector_probe(name: str, family: str, code: str, sources: tuple[str, ...], result: str, *, wave64: bool) -> Probe:
    vcc = "vcc" if wave64 else "vcc_lo"
    given = ["ABC"[i] for i in range(len(sources))]
    before, after = [], []
    if name.startswith("v_cmp"):
        text = f"{name} {vcc}, {', '.join(given)}"
        after = [f"v_cndmask_b32 v8, 0, 1, {vcc}"]
    elif "VCC" in code or family == "VOP3SDOp":
        before = ["v_and_b32 v11, 1, v6", f"v_cmp_eq_u32 {vcc}, 1, v11"]
        reads = "VCC.u64[laneId]" in code.replace("VCC.u64[laneId] =", "")
        if "cndmask" in name:
            text = f"{name} D, {', '.join(given)}, {vcc}"
        else:
            text = f"{name} D, {vcc}, {', '.join(given)}{f', {vcc}' if reads else ''}"
            after = [f"v_cndmask_b32 v9, 0, 1, {vcc}"] if not result.endswith("64") else []
    elif "SIMM32" in code:
        literal = "0x40490fdb" if "f32" in code else "0x4248"
        given.insert(1 if "SIMM32.f32, S1" in code or "SIMM32.f16, S1" in code else 2, literal)
        text = f"{name} D, {', '.join(given)}"
    else:
        text = f"{name} D, {', '.join(given)}"
    return Probe(name, family, code, (*before, text, *after), sources, result)


def scalar_probes(name: str, family: str, code: str, sources: tuple[str, ...], result: str) -> list[Probe]:
    wide = result.endswith("64")
    registers = {"A": "s[12:13]", "B": "s[14:15]", "D": "s[16:17]"}
    small = {"A": "s12", "B": "s14", "D": "s16"}
    given = [(registers if kind.endswith("64") else small)["AB"[i]] for i, kind in enumerate(sources[:2])]
    if "SIMM16" in code:
        given.append("0x8005" if ".u16" in code else "-32763")
    if "SIMM32" in code:
        given.insert(1 if "SIMM32.f32, S1" in code else 2, "0x40490fdb")
    target = [] if result == "scc" else [(registers if wide else small)["D"]]
    before = [f"v_readfirstlane_b32 s{12 + i}, v{2 + i}" for i in range(4)]
    before += ["v_readfirstlane_b32 s16, v8", "v_readfirstlane_b32 s17, v9", "v_readfirstlane_b32 s18, v6",
               "s_bitcmp1_b32 s18, 0"]  # fmt: skip
    text = f"{name} {', '.join([*target, *given])}"
    flag = ["s_cselect_b32 s16, 1, 0", "v_mov_b32 v8, s16"]
    made = []
    if result != "scc":
        made.append(
            Probe(name, family, code, (*before, text, "v_mov_b32 v8, s16", "v_mov_b32 v9, s17"), sources, result)
        )
    if "SCC =" in code:
        made.append(Probe(f"{name} (scc)", family, code, (*before, text, *flag), sources, "scc"))
    return made

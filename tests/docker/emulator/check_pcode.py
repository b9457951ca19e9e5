"""Runs under `greenlane emulate`: each instruction on random operands and edge values, against AMD's pseudo-code."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from check_instructions import LLVM, REGISTERS, Array, assemble, kernel, launch, operands
from pcode.cases import TOLERANCES, Probe, probes
from pcode.parse import NotUnderstood, parse
from pcode.run import Lane
from pcode.values import Value, decode

from greenlane.emulator import scalar_table, vector_table

LIBRARIES = {"gfx11": "rdna3", "gfx12": "rdna4", "gfx9": "cdna"}
# What the emulator translates by code of its own, in place of a row of a table.
HANDLED = (
    r"v_cmp_\w+_[iuf](16|32|64)|v_(add|sub|subrev|addc|subb|subbrev)_co(_ci)?_u32|v_mad(_co)?_[iu]64_[iu]32|"
    r"s_cmpk?_\w+_[iuf](16|32|64)|s_bitcmp[01]_b(32|64)|v_swap_b(16|32)"
)
EDGES_16 = [
    0,
    1,
    0x3FF,
    0x400,
    0x3C00,
    0xBC00,
    0x3800,
    0x7BFF,
    0x7C00,
    0xFC00,
    0x7E00,
    0x8000,
    0x8001,
    0x7FFF,
    0xFFFF,
    0x5640,
]
# Where exponents lie, and how far apart they must be for the pseudo-code to call the quotient an underflow.
FIXUPS = {"v_div_fixup_f32": (23, 255, -150), "v_div_fixup_f64": (52, 2047, -1075)}
CHUNK = 40  # instructions in a kernel: a longer one takes long to compile
SAMPLES = 96  # lanes of each instruction that the interpreter computes


def library(arch: str, folder: Path) -> dict[tuple[str, str], str]:
    sys.path.insert(0, str(folder))
    name = next(name for prefix, name in LIBRARIES.items() if arch.startswith(prefix))
    module = importlib.import_module(f"tinygrad.runtime.autogen.amd.{name}.str_pcode")
    plain = {key: code.replace("WAVE_MODE.IEEE", "1'0U") for key, code in module.PCODE.items()}
    for key, code in plain.items():
        if type(key).__name__ == "SOPKOp":  # one of the books calls the immediate a source
            plain[key] = re.sub(r"S\d\.([iu]16)", r"SIMM16.\1", code)
    return {(type(key).__name__, key.name.lower()): code for key, code in plain.items()}


def known(mnemonic: str) -> bool:
    """Whether the emulator translates it; every other one is a hard error there."""
    tables = (vector_table.OPERATIONS, vector_table.PACKED, scalar_table.OPERATIONS)
    return any(mnemonic in table for table in tables) or re.fullmatch(HANDLED, mnemonic) is not None


def spelt(probe: Probe, style: str) -> list[str]:
    """Lines with their registers; `style` is how a 16-bit register is written."""
    kinds = {"D": probe.result, **dict(zip("ABC", probe.sources, strict=False))}

    def named(found: re.Match[str]) -> str:
        first, kind = REGISTERS[found[0]], kinds.get(found[0], "b32")
        if kind.endswith("64") or kind == "pair32":
            return f"v[{first}:{first + 1}]"
        return f"v{first}{style if re.fullmatch(r'b?[a-z]+16', kind) else ''}"

    if probe.scalar:
        return list(probe.lines)
    out = []
    for line in probe.lines:
        mnemonic, _, rest = line.partition(" ")
        out.append(f"{mnemonic} {re.sub(r'(?<![A-Z_a-z])[ABCD](?![A-Z_a-z(0-9])', named, rest)}")
    return out


def accepted(arch: str, found: Sequence[Probe], folder: Path) -> list[tuple[Probe, list[str]]]:
    """Those that the assembler knows on this architecture, in the first spelling that it takes."""
    chosen: dict[str, list[str]] = {}
    for style in ("", ".l"):
        lines, owner = [], []
        for probe in found:
            if probe.name not in chosen:
                lines += spelt(probe, style)
                owner += [probe.name] * len(spelt(probe, style))
        source = folder / "probe.s"
        source.write_text("\n".join([".text", *lines, ""]))
        command = [
            LLVM / "clang",
            "-target",
            "amdgcn-amd-amdhsa",
            f"-mcpu={arch}",
            "-c",
            source,
            "-o",
            folder / "probe.o",
        ]
        errors = subprocess.run(command, capture_output=True, text=True).stderr
        bad = {owner[int(line) - 2] for line in re.findall(r"probe\.s:(\d+):\d+: error", errors)}
        chosen |= {p.name: spelt(p, style) for p in found if p.name not in chosen and p.name not in bad}
    return [(probe, chosen[probe.name]) for probe in found if probe.name in chosen]


def source_data(kind: str, raw: Array, which: int) -> Array:
    """Operands fit for a type: f16 and f64 have edges of their own, the others keep those of 32 bits."""
    rng = np.random.default_rng(which + len(kind))
    if kind in ("f16", "i16", "u16", "bf16", "pair"):
        low = rng.integers(0, 1 << 16, (raw.size, 4), np.uint64).astype(np.uint16)
        near = (rng.standard_normal((raw.size, 4)) * 8).astype(np.float16).view(np.uint16)
        low[::2] = near[::2]
        edges = np.array(EDGES_16, np.uint16)
        low[1::4] = edges[rng.integers(0, edges.size, low[1::4].shape)]
        return low.view(np.uint64)[:, 0]
    if kind == "f64":
        wide = rng.standard_normal(raw.size) * 10.0 ** rng.integers(-12, 13, raw.size)
        edges = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 1e300, -1e300, 5e-324, np.inf, -np.inf, np.nan, 2.0**32])
        wide[::3] = edges[rng.integers(0, edges.size, wide[::3].size)]
        return wide.view(np.uint64)
    return raw


def expected(probe: Probe, library: Mapping[str, str], given: Sequence[int], flag: int, old: int) -> Value:
    names = {f"S{i}": Value("b", 64, value) for i, value in enumerate(given)}
    names |= {
        "D0": Value("b", 128, old), "D1": Value("b", 64, 0), "VCC": Value("b", 64, flag), "EXEC": Value("b", 64, 1),
        "laneId": Value("u", 32, 0), "SCC": Value("u", 1, flag), "OPSEL": Value("b", 32, 0),
        "SIMM16": Value("b", 16, 0x8005),
        "SIMM32": Value("b", 32, 0x40490FDB if "f32" in probe.code else 0x4248),
    }  # fmt: skip
    lane = Lane(library, names)
    lane.run(parse(probe.code))
    return lane.names["SCC"] if probe.result == "scc" else lane.names["D0"]


def same(got: int, wanted: int, kind: str, allowed: int) -> bool:
    if kind in ("pair", "pair32"):
        width, part = (16, "f16") if kind == "pair" else (32, "f32")
        mask = (1 << width) - 1
        return all(same(got >> at & mask, wanted >> at & mask, part, allowed) for at in (0, width))
    if kind in ("f16", "bf16", "f32", "f64"):
        if math.isnan(decode(got, kind)) and math.isnan(decode(wanted, kind)):
            return True
        sign = 1 << (int(kind.lstrip("bf")) - 1)
        a, b = (raw if raw < sign else sign - raw for raw in (got, wanted))
        return got == wanted or abs(a - b) <= allowed
    return got == wanted


def width_of(kind: str) -> int:
    return {"pair": 32, "pair32": 64, "vcc": 1, "scc": 1}.get(kind) or int(re.sub(r"\D", "", kind))


def judge(probe: Probe, names: Mapping[str, str], inputs: Array, outputs: Array, lanes: int) -> dict[str, object]:
    """How many samples agreed, and the first that didn't."""
    step = lanes if probe.scalar else max(1, outputs.size // SAMPLES)
    mask = (1 << width_of(probe.result)) - 1
    answer: dict[str, object] = {"case": probe.name}
    agreed = 0
    for at in range(0, outputs.size, step):
        given = [int(inputs[i, at]) for i in range(len(probe.sources))]
        flag, old = int(inputs[2, at]) & 1, int(inputs[3, at])
        try:
            wanted = expected(probe, names, given, flag, old).raw & mask
        except NotUnderstood as error:
            return answer | {"not_understood": str(error)}
        got = int(outputs[at]) & mask
        if same(got, wanted, probe.result, TOLERANCES.get(probe.name, 0)):
            agreed += 1
        elif not excused(probe.name, given, wanted):
            shown = {"sources": [hex(one) for one in given], "old": hex(old), "flag": flag}
            return answer | {"different": shown | {"got": hex(got), "expected": hex(wanted)}}
    return answer | {"agreed": agreed}


def excused(name: str, given: Sequence[int], wanted: int) -> bool:
    """Where the hardware is known to part from the pseudo-code, or where that names a constant without its value."""
    if name.startswith("v_fract"):  # never one: the result stays below it
        return wanted in (0x3F800000, 0x3C00, 0x3FF0000000000000)
    if name in ("v_exp_f32", "v_s_exp_f32"):  # gives no denormal
        return wanted >> 23 == 0
    if name in FIXUPS:  # the quotient of the step before has underflowed already
        shift, field, least = FIXUPS[name]
        return (given[2] >> shift & field) - (given[1] >> shift & field) < least
    if name.startswith("v_frexp_exp"):  # zero has exponent zero, a denormal the exponent of its value
        return (
            given[0] & 0x7FF0000000000000 if "f64" in name else given[0] & (0x7C00 if "f16" in name else 0x7F800000)
        ) == 0
    return False


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", required=True)
    parser.add_argument("--oracle", type=Path, required=True)
    arguments = parser.parse_args()
    lanes = 64 if arguments.arch.startswith("gfx9") else 32
    codes = library(arguments.arch, arguments.oracle)
    names = {re.sub(r"_e(32|64)$", "", name): code for (_, name), code in codes.items()}
    found = [one for one in probes(codes, wave64=lanes == 64) if known(one.name.split()[0])]
    raw = operands(lanes)
    with tempfile.TemporaryDirectory() as folder:
        chosen = accepted(arguments.arch, found, Path(folder))
    rows = [[*probe.sources, *["b32"] * (3 - len(probe.sources)), probe.result] for probe, _ in chosen]
    inputs = np.stack([np.stack([source_data(kind, raw[i], i) for i, kind in enumerate(row)]) for row in rows])
    outputs = np.zeros((len(chosen), raw.shape[1]), np.uint64)
    for at in range(0, len(chosen), CHUNK):
        part = slice(at, at + CHUNK)
        with tempfile.TemporaryDirectory() as folder:
            source = kernel(arguments.arch, [lines for _, lines in chosen[part]], lanes)
            launch(assemble(arguments.arch, source, Path(folder)), inputs[part], outputs[part], lanes)
    pairs = zip(chosen, inputs, outputs, strict=True)
    results = [judge(probe, names, given, got, lanes) for (probe, _), given, got in pairs]
    print(
        json.dumps(
            {
                "results": results,
                "not_on_this_architecture": sorted({p.name for p in found} - {p.name for p, _ in chosen}),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

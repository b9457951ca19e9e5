"""Runs under `greenlane emulate`: a kernel that executes each case once, compared with the models."""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from models import CASES, TYPES, Array, Case

LLVM = Path("/usr/lib/llvm-21/bin")
REGISTERS = {"A": 2, "B": 4, "C": 6, "D": 8}
EDGES_32 = [
    0,
    1,
    2,
    31,
    32,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x10000,
    0x7FFFFF,
    0x800000,
    0x3F800000,
    0xBF800000,
]
EDGES_32 += [
    0x7F7FFFFF,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x00000001,
    0x80000001,
    0x007FFFFF,
    0x80000000,
    0x7FFFFFFF,
    0xFFFFFFFF,
]
EDGES_64 = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    1e300,
    -1e300,
    5e-324,
    np.inf,
    -np.inf,
    np.nan,
    4294967295.0,
    -2147483649.0,
]
GROUPS = 16


def operands(lanes: int) -> Array:
    """(4, GROUPS * lanes) 64-bit values: edges against edges first, then random ones."""
    rng = np.random.default_rng(20)
    count = GROUPS * lanes
    values = rng.integers(0, 1 << 64, (4, count), np.uint64)
    near = (
        (rng.standard_normal((4, count)) * 10.0 ** rng.integers(-3, 4, (4, count))).astype(np.float32).view(np.uint32)
    )
    values[:, ::3] = values[:, ::3] >> np.uint64(32) << np.uint64(32) | near[:, ::3]
    edges = np.array(EDGES_32, np.uint64)
    values[0, : count // 2] = values[0, : count // 2] >> np.uint64(32) << np.uint64(32) | np.resize(edges, count // 2)
    values[1, : count // 2] = values[1, : count // 2] >> np.uint64(32) << np.uint64(32) | np.resize(
        np.roll(edges, 5), count // 2
    )
    return values


def shaped(kind: str, raw: Array) -> Array:
    """The raw 64 bits, made fit for one kind of source."""
    low = (raw & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    rng = np.random.default_rng(int(low[0]) + len(kind))
    if kind == "small":
        low = rng.uniform(-40, 40, low.size).astype(np.float32).view(np.uint32)
    elif kind == "positive":
        low = (10.0 ** rng.uniform(-30, 30, low.size)).astype(np.float32).view(np.uint32)
    elif kind == "normal":
        low = (rng.standard_normal(low.size) * 100).astype(np.float32).view(np.uint32)
    elif kind == "shift":
        low = rng.integers(-140, 140, low.size).astype(np.int32).view(np.uint32)
    elif kind == "selector":
        low = rng.integers(0, 16, (low.size, 4)).astype(np.uint8).view(np.uint32)[:, 0]
    elif kind == "halves":
        low = (rng.standard_normal((low.size, 2)) * 30).astype(np.float16).view(np.uint32)[:, 0]
    elif kind == "f64":
        wide = rng.standard_normal(low.size) * 10.0 ** rng.integers(-12, 13, low.size)
        wide[: len(EDGES_64)] = EDGES_64
        return wide.view(np.uint64)
    return raw >> np.uint64(32) << np.uint64(32) | low


def registers(text: str, case: Case) -> str:
    """The instruction with its registers."""
    kinds = {"D": case.result, **dict(zip("ABC", case.sources, strict=False))}

    def named(found: re.Match[str]) -> str:
        letter = found[0]
        if letter == "CC":
            return f"v[{REGISTERS['C']}:{REGISTERS['C'] + 1}]"
        first = REGISTERS[letter]
        return f"v[{first}:{first + 1}]" if kinds.get(letter, "").endswith("64") else f"v{first}"

    mnemonic, _, rest = text.partition(" ")
    return f"{mnemonic} {re.sub(r'(?<![A-Z_a-z])(CC|[ABCD])(?![A-Z_a-z(0-9])', named, rest)}"


def kernel(arch: str, bodies: Sequence[Sequence[str]], lanes: int) -> str:
    """One workgroup a wave; inputs (case, source, thread), outputs (case, thread), 8 bytes each."""
    old = arch.startswith("gfx9")
    load, store = ("global_load_dwordx2", "global_store_dwordx2") if old else ("global_load_b64", "global_store_b64")
    group = "s2" if arch == "gfx942" else "ttmp9" if arch.startswith("gfx12") else "s15" if arch == "gfx1100" else "s2"
    user = 15 if group == "s15" else 2
    wait = "s_wait_loadcnt 0x0" if arch.startswith("gfx12") else "s_waitcnt vmcnt(0)"
    scalar_wait = "s_wait_kmcnt 0x0" if arch.startswith("gfx12") else "s_waitcnt lgkmcnt(0)"
    wide = {True: "s_load_dwordx4", False: "s_load_b128"}[old]
    row = GROUPS * lanes * 8
    body = []
    for lines in bodies:
        for register in (2, 4, 6, 8):
            body += [f"{load} v[{register}:{register + 1}], v10, s[4:5]"]
            body += [f"s_add_u32 s4, s4, {row}", "s_addc_u32 s5, s5, 0"]
        body += [wait, *lines, f"{store} v10, v[8:9], s[6:7]"]
        body += [f"s_add_u32 s6, s6, {row}", "s_addc_u32 s7, s7, 0"]
    return FILE.format(
        arch=arch,
        load_arguments=wide,
        scalar_wait=scalar_wait,
        group=group,
        shift=9 if lanes == 64 else 8,
        add="v_add_u32" if old else "v_add_nc_u32",
        body="\n".join(body),
        user_sgprs=user,
        special=".amdhsa_accum_offset 64" if old else ".amdhsa_wavefront_size32 1",
        lanes=lanes,
    )


FILE = """
.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.text
.globl cases
.p2align 8
.type cases,@function
cases:
{load_arguments} s[4:7], s[0:1], 0x0
{scalar_wait}
s_lshl_b32 s8, {group}, {shift}
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v10, 3, v0
{add} v10, s8, v10
{body}
s_endpgm
.rodata
.p2align 6
.amdhsa_kernel cases
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_user_sgpr_count {user_sgprs}
.amdhsa_next_free_vgpr 64
.amdhsa_next_free_sgpr 32
{special}
.amdhsa_float_denorm_mode_32 3
.amdhsa_float_denorm_mode_16_64 3
.amdhsa_system_sgpr_workgroup_id_x 1
.amdhsa_kernarg_size 16
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
  - .name: cases
    .symbol: cases.kd
    .kernarg_segment_size: 16
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: {lanes}
    .sgpr_count: 32
    .vgpr_count: 64
    .max_flat_workgroup_size: 1024
    .args:
      - {{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global}}
...
.end_amdgpu_metadata
"""


def assemble(arch: str, source: str, folder: Path) -> bytes:
    (folder / "cases.s").write_text(source)
    target = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}"]
    subprocess.run([LLVM / "clang", *target, folder / "cases.s", "-o", folder / "cases.co"], check=True)
    return (folder / "cases.co").read_bytes()


def launch(code: bytes, inputs: Array, outputs: Array, lanes: int) -> None:
    hip = ctypes.CDLL("libamdhip64.so.6")

    def call(name: str, *arguments: object) -> None:
        status = getattr(hip, name)(*arguments)
        if status:
            raise SystemExit(f"{name} failed with {status}")

    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("hipModuleLoadData", ctypes.byref(module), code)
    call("hipModuleGetFunction", ctypes.byref(function), module, b"cases")
    pointers = []
    for array in (inputs, outputs):
        pointer = ctypes.c_void_p()
        call("hipMalloc", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes))
        call("hipMemcpy", pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), 1)
        pointers.append(pointer)
    parameters = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(pointer), ctypes.c_void_p) for pointer in pointers))
    call("hipModuleLaunchKernel", function, GROUPS, 1, 1, lanes, 1, 1, 0, None, parameters, None)
    call("hipMemcpy", ctypes.c_void_p(outputs.ctypes.data), pointers[1], ctypes.c_size_t(outputs.nbytes), 2)


def typed(raw: Array, kind: str) -> Array:
    known = TYPES.get(kind, np.float32 if kind in ("small", "positive", "normal") else np.uint32)
    size = np.dtype(known).itemsize
    return np.ascontiguousarray(raw).view(np.uint8).reshape(-1, 8)[:, :size].copy().view(known)[:, 0]


def difference(got: Array, expected: Array) -> int:
    """The largest distance in units in the last place; NaNs of any payload are equal."""
    if got.dtype.kind != "f":
        return int((got != expected).sum())
    integer = {2: np.int16, 4: np.int32, 8: np.int64}[got.dtype.itemsize]

    def ordered(x: Array) -> Array:
        bits = x.view(integer).astype(object)
        return np.array([bit if bit >= 0 else -(bit & np.iinfo(integer).max) for bit in bits], object)

    both = np.isnan(got) & np.isnan(expected)
    distance = np.abs(ordered(got) - ordered(expected))
    distance[both] = 0
    signs = (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    distance[signs] = 1
    return int(max(distance))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", required=True)
    parser.add_argument("--lanes", type=int, default=0)
    arguments = parser.parse_args()
    lanes = arguments.lanes or (64 if arguments.arch.startswith("gfx9") else 32)
    cases = [case for case in CASES if case.runs_on(arguments.arch)]
    raw = operands(lanes)
    inputs = np.stack([np.stack([shaped(kind, raw[i]) for i, kind in enumerate(padded(case))]) for case in cases])
    outputs = np.zeros((len(cases), raw.shape[1]), np.uint64)
    with tempfile.TemporaryDirectory() as folder:
        bodies = [[registers(case.text, case)] for case in cases]
        code = assemble(arguments.arch, kernel(arguments.arch, bodies, lanes), Path(folder))
    launch(code, inputs, outputs, lanes)
    results = []
    with np.errstate(all="ignore"):
        for case, given, raw_result in zip(cases, inputs, outputs, strict=True):
            results.append(judge(case, given, raw_result))
    print(json.dumps(results))
    return 0


def padded(case: Case) -> list[str]:
    """The kinds of the four loaded registers: A, B, C and what the destination holds before."""
    plain = [kind for kind in case.sources if kind != "old"]
    return [*plain, *["u32"] * (3 - len(plain)), case.result if case.result in ("f32", "f64") else "u32"]


def judge(case: Case, given: Array, raw: Array) -> dict[str, object]:
    plain = [kind for kind in case.sources if kind != "old"]
    sources = [typed(given[i], kind) for i, kind in enumerate(plain)]
    if "old" in case.sources:
        sources.append(typed(given[3], case.result))
    got = typed(raw, case.result)
    expected = np.asarray(case.model(*sources)).astype(TYPES[case.result])
    off = difference(got, expected)
    answer: dict[str, object] = {"case": case.text, "difference": off, "allowed": case.ulps}
    if off > case.ulps:
        bad = int(
            np.argmax(
                (got != expected) & ~(np.isnan(got) & np.isnan(expected)) if got.dtype.kind == "f" else got != expected
            )
        )
        answer["example"] = {
            "sources": [str(source[bad]) for source in sources],
            "got": str(got[bad]),
            "expected": str(expected[bad]),
        }
    return answer


if __name__ == "__main__":
    sys.exit(main())

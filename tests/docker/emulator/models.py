"""What instructions compute, written in NumPy: the independent model that the emulator is compared with.

A case: the instruction with D for the destination and A, B, C for the sources; types of the destination and of the
sources; the model; how many units in the last place it may differ. An `old` source is what the destination held before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TYPES = {
    "u32": np.uint32, "i32": np.int32, "f32": np.float32, "u64": np.uint64, "i64": np.int64, "f64": np.float64,
    "u16": np.uint16, "i16": np.int16, "f16": np.float16,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    text: str
    result: str
    sources: tuple[str, ...]
    model: Callable[..., Array]
    ulps: int = 0
    archs: str = "gfx11 gfx12 gfx9"

    def runs_on(self, arch: str) -> bool:
        return any(arch.startswith(prefix) for prefix in self.archs.split())


RDNA = "gfx11 gfx12"


def fma32(a: Array, b: Array, c: Array) -> Array:
    """Exact product in double, the sum rounded to odd, then once to single."""
    product = a.astype(np.float64) * b.astype(np.float64)
    wide = c.astype(np.float64)
    total = product + wide
    part = total - product
    error = (product - (total - part)) + (wide - part)
    bits = total.view(np.int64)
    odd = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    return np.where(odd, np.where(away, bits + 1, bits - 1), bits).astype(np.int64).view(np.float64).astype(np.float32)


def larger(a: Array, b: Array) -> Array:
    zero = (a == b) & np.signbit(a)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.where((a > b) | ((a == b) & ~zero), a, b)))


def smaller(a: Array, b: Array) -> Array:
    return -larger(-a, -b)


def to_integer(low: int, high: int, kind: type) -> Callable[[Array], Array]:
    def convert(a: Array) -> Array:
        wide = np.nan_to_num(np.trunc(a.astype(np.float64)), nan=0.0, posinf=high, neginf=low)
        return np.clip(wide, low, high).astype(np.int64).astype(kind)

    return convert


def bits_of(x: Array) -> Array:
    return np.array([[int(v) >> i & 1 for i in range(32)] for v in x])


def leading_zeros(x: Array) -> Array:
    return np.array([32 - int(v).bit_length() if v else 0xFFFFFFFF for v in x], np.uint32)


def dot_bytes(a: Array, b: Array, c: Array, kind_a: type, kind_b: type) -> Array:
    left, right = a.view(kind_a).reshape(-1, 4).astype(np.int64), b.view(kind_b).reshape(-1, 4).astype(np.int64)
    return ((left * right).sum(1) + c.astype(np.int64)).astype(np.uint32)


def pairs(function: Callable[..., Array], kind: type) -> Callable[..., Array]:
    """The same on both halves of a word."""

    def apply(*sources: Array) -> Array:
        return function(*(source.view(kind) for source in sources)).astype(kind).view(np.uint32)

    return apply


def toward_zero_f16(x: Array) -> Array:
    near = x.astype(np.float16)
    too_far = np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))
    return np.where(too_far, near.view(np.uint16) - 1, near.view(np.uint16)).astype(np.uint16)


def permute(a: Array, b: Array, s: Array) -> Array:
    out = []
    for high, low, selector in zip(a.tolist(), b.tolist(), s.tolist(), strict=True):
        raw = (low | high << 32).to_bytes(8, "little")
        word = 0
        for k in range(4):
            pick = selector >> 8 * k & 255
            byte = (
                raw[pick]
                if pick < 8
                else 0
                if pick == 12
                else 255
                if pick > 12
                else 255 * (raw[2 * (pick - 8) + 1] >> 7)
            )
            word |= byte << 8 * k
        out.append(word)
    return np.array(out, np.uint32)


U, S, F, D, H = np.uint32, np.int32, np.float32, np.float64, np.float16
CASES = [
    Case("v_add_f32 D, A, B", "f32", ("f32", "f32"), lambda a, b: a + b),
    Case("v_sub_f32 D, A, B", "f32", ("f32", "f32"), lambda a, b: a - b),
    Case("v_mul_f32 D, A, B", "f32", ("f32", "f32"), lambda a, b: a * b),
    Case("v_add_f32_e64 D, -A, |B|", "f32", ("f32", "f32"), lambda a, b: -a + np.abs(b)),
    Case("v_mul_f32_e64 D, A, B mul:2", "f32", ("f32", "f32"), lambda a, b: a * b * F(2), archs="gfx11"),
    Case("v_add_f32_e64 D, A, B clamp", "f32", ("f32", "f32"),
         lambda a, b: np.nan_to_num(np.clip(a + b, 0, 1), nan=0.0)),
    Case("v_fma_f32 D, A, B, C", "f32", ("f32", "f32", "f32"), fma32),
    Case("v_fmac_f32 D, A, B", "f32", ("f32", "f32", "old"), fma32),
    Case("v_max_f32 D, A, B", "f32", ("f32", "f32"), larger, archs="gfx11 gfx9"),
    Case("v_min_f32 D, A, B", "f32", ("f32", "f32"), smaller, archs="gfx11 gfx9"),
    Case("v_max_num_f32 D, A, B", "f32", ("f32", "f32"), larger, archs="gfx12"),
    Case("v_min_num_f32 D, A, B", "f32", ("f32", "f32"), smaller, archs="gfx12"),
    Case("v_max3_f32 D, A, B, C", "f32", ("f32",) * 3, lambda a, b, c: larger(larger(a, b), c), archs="gfx11 gfx9"),
    Case("v_trunc_f32 D, A", "f32", ("f32",), np.trunc),
    Case("v_floor_f32 D, A", "f32", ("f32",), np.floor),
    Case("v_ceil_f32 D, A", "f32", ("f32",), np.ceil),
    Case("v_rndne_f32 D, A", "f32", ("f32",), np.rint),
    Case("v_sqrt_f32 D, A", "f32", ("f32",), np.sqrt, 1),
    Case("v_rcp_f32 D, A", "f32", ("f32",), lambda a: F(1) / a, 1),
    Case("v_rsq_f32 D, A", "f32", ("f32",), lambda a: (1 / np.sqrt(a.astype(D))).astype(F), 2),
    Case("v_exp_f32 D, A", "f32", ("small",), lambda a: np.exp2(a.astype(D)).astype(F), 2),
    Case("v_log_f32 D, A", "f32", ("positive",), lambda a: np.log2(a.astype(D)).astype(F), 1),
    Case("v_sin_f32 D, A", "f32", ("small",), lambda a: np.sin(np.fmod(a.astype(D), 1) * 2 * np.pi).astype(F), 1),
    Case("v_cos_f32 D, A", "f32", ("small",), lambda a: np.cos(np.fmod(a.astype(D), 1) * 2 * np.pi).astype(F), 1),
    Case("v_ldexp_f32 D, A, B", "f32", ("f32", "shift"), lambda a, b: np.ldexp(a, b.view(S))),
    Case("v_frexp_mant_f32 D, A", "f32", ("f32",), lambda a: np.where(np.isfinite(a), np.frexp(a)[0], a)),
    Case("v_frexp_exp_i32_f32 D, A", "i32", ("f32",), lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0)),
    Case("v_cvt_u32_f32 D, A", "u32", ("f32",), to_integer(0, 2**32 - 1, U)),
    Case("v_cvt_i32_f32 D, A", "i32", ("f32",), to_integer(-(2**31), 2**31 - 1, S)),
    Case("v_cvt_u32_f64 D, A", "u32", ("f64",), to_integer(0, 2**32 - 1, U)),
    Case("v_cvt_i32_f64 D, A", "i32", ("f64",), to_integer(-(2**31), 2**31 - 1, S)),
    Case("v_cvt_f32_u32 D, A", "f32", ("u32",), lambda a: a.astype(F)),
    Case("v_cvt_f32_i32 D, A", "f32", ("i32",), lambda a: a.astype(F)),
    Case("v_cvt_f64_i32 D, A", "f64", ("i32",), lambda a: a.astype(D)),
    Case("v_cvt_f64_u32 D, A", "f64", ("u32",), lambda a: a.astype(D)),
    Case("v_cvt_f64_f32 D, A", "f64", ("f32",), lambda a: a.astype(D)),
    Case("v_cvt_f32_f64 D, A", "f32", ("f64",), lambda a: a.astype(F)),
    Case("v_cvt_f32_ubyte1 D, A", "f32", ("u32",), lambda a: (a >> U(8) & U(255)).astype(F)),
    Case("v_cvt_f32_ubyte3 D, A", "f32", ("u32",), lambda a: (a >> U(24)).astype(F)),
    Case("v_cvt_pk_i16_i32 D, A, B", "u32", ("i32", "i32"),
         lambda a, b: np.clip(np.stack([a, b], 1), -32768, 32767).astype(np.int16).view(U)[:, 0]),
    Case("v_cvt_pk_u16_u32 D, A, B", "u32", ("u32", "u32"),
         lambda a, b: np.stack([np.minimum(a, 65535), np.minimum(b, 65535)], 1).astype(np.uint16).view(U)[:, 0]),
    Case("v_cvt_pk_rtz_f16_f32 D, A, B", "u32", ("normal", "normal"),
         lambda a, b: np.stack([toward_zero_f16(a), toward_zero_f16(b)], 1).view(U)[:, 0], archs=RDNA),
    Case("v_add_f64 D, A, B", "f64", ("f64", "f64"), lambda a, b: a + b),
    Case("v_mul_f64 D, A, B", "f64", ("f64", "f64"), lambda a, b: a * b),
    Case("v_max_f64 D, A, B", "f64", ("f64", "f64"), larger, archs="gfx11 gfx9"),
    Case("v_rndne_f64 D, A", "f64", ("f64",), np.rint),
    Case("v_ldexp_f64 D, A, B", "f64", ("f64", "shift"), lambda a, b: np.ldexp(a, b.view(S))),
    Case("v_and_b32 D, A, B", "u32", ("u32", "u32"), lambda a, b: a & b),
    Case("v_or_b32 D, A, B", "u32", ("u32", "u32"), lambda a, b: a | b),
    Case("v_xor_b32 D, A, B", "u32", ("u32", "u32"), lambda a, b: a ^ b),
    Case("v_not_b32 D, A", "u32", ("u32",), lambda a: ~a),
    Case("v_and_or_b32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: a & b | c),
    Case("v_or3_b32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: a | b | c),
    Case("v_xor3_b32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: a ^ b ^ c, archs=RDNA),
    Case("v_bfi_b32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: a & b | ~a & c),
    Case("v_bfe_u32 D, A, B, C", "u32", ("u32",) * 3,
         lambda a, b, c: a >> (b & U(31)) & ((U(1) << (c & U(31))) - U(1))),
    Case("v_lshlrev_b32 D, A, B", "u32", ("u32", "u32"), lambda a, b: b << (a & U(31))),
    Case("v_lshrrev_b32 D, A, B", "u32", ("u32", "u32"), lambda a, b: b >> (a & U(31))),
    Case("v_ashrrev_i32 D, A, B", "i32", ("u32", "i32"), lambda a, b: b >> (a & U(31)).view(S)),
    Case("v_lshrrev_b64 D, A, B", "u64", ("u32", "u64"), lambda a, b: b >> (a & U(63)).astype(np.uint64)),
    Case("v_ashrrev_i64 D, A, B", "i64", ("u32", "i64"), lambda a, b: b >> (a & U(63)).astype(np.int64)),
    Case("v_lshlrev_b64 D, A, B", "u64", ("u32", "u64"), lambda a, b: b << (a & U(63)).astype(np.uint64)),
    Case("v_lshl_add_u32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: (a << (b & U(31))) + c),
    Case("v_add_lshl_u32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: (a + b) << (c & U(31))),
    Case("v_lshl_or_b32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: a << (b & U(31)) | c),
    Case("v_add3_u32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: a + b + c),
    Case("v_xad_u32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: (a ^ b) + c),
    Case("v_alignbit_b32 D, A, B, C", "u32", ("u32",) * 3,
         lambda a, b, c: ((a.astype(np.uint64) << np.uint64(32) | b) >> (c & U(31)).astype(np.uint64)).astype(U)),
    Case("v_perm_b32 D, A, B, C", "u32", ("u32", "u32", "selector"), permute),
    Case("v_bfrev_b32 D, A", "u32", ("u32",), lambda a: np.array([int(f"{int(v):032b}"[::-1], 2) for v in a], U)),
    Case("v_clz_i32_u32 D, A", "u32", ("u32",), leading_zeros, archs=RDNA),
    Case("v_ffbh_u32 D, A", "u32", ("u32",), leading_zeros, archs="gfx9"),
    Case("v_bcnt_u32_b32 D, A, B", "u32", ("u32", "u32"), lambda a, b: bits_of(a).sum(1).astype(U) + b),
    Case("v_mul_lo_u32 D, A, B", "u32", ("u32", "u32"), lambda a, b: a * b),
    Case("v_mul_hi_u32 D, A, B", "u32", ("u32", "u32"),
         lambda a, b: (a.astype(np.uint64) * b >> np.uint64(32)).astype(U)),
    Case("v_mul_hi_i32 D, A, B", "i32", ("i32", "i32"), lambda a, b: (a.astype(np.int64) * b >> 32).astype(S)),
    Case("v_mul_u32_u24 D, A, B", "u32", ("u32", "u32"), lambda a, b: (a & U(0xFFFFFF)) * (b & U(0xFFFFFF))),
    Case("v_mul_i32_i24 D, A, B", "i32", ("i32", "i32"), lambda a, b: (a << 8 >> 8) * (b << 8 >> 8)),
    Case("v_mad_u32_u24 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: (a & U(0xFFFFFF)) * (b & U(0xFFFFFF)) + c),
    Case("v_min_u32 D, A, B", "u32", ("u32", "u32"), np.minimum),
    Case("v_max_i32 D, A, B", "i32", ("i32", "i32"), np.maximum),
    Case("v_med3_i32 D, A, B, C", "i32", ("i32",) * 3, lambda a, b, c: np.sort(np.stack([a, b, c]), 0)[1]),
    Case("v_med3_u32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: np.sort(np.stack([a, b, c]), 0)[1]),
    Case("v_sad_u32 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c),
    Case("v_add_nc_u32 D, A, B", "u32", ("u32", "u32"), lambda a, b: a + b, archs=RDNA),
    Case("v_add_nc_u32_e64 D, A, B clamp", "u32", ("u32", "u32"),
         lambda a, b: np.minimum(a.astype(np.uint64) + b, 2**32 - 1).astype(U), archs=RDNA),
    Case("v_sub_nc_u32 D, A, B", "u32", ("u32", "u32"), lambda a, b: a - b, archs=RDNA),
    Case("v_add_nc_i32 D, A, B clamp", "i32", ("i32", "i32"),
         lambda a, b: np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1).astype(S), archs=RDNA),
    Case("v_dot4_i32_iu8 D, A, B, C neg_lo:[1,1,0]", "u32", ("u32",) * 3,
         lambda a, b, c: dot_bytes(a, b, c, np.int8, np.int8), archs=RDNA),
    Case("v_dot4_i32_iu8 D, A, B, C neg_lo:[1,0,0]", "u32", ("u32",) * 3,
         lambda a, b, c: dot_bytes(a, b, c, np.int8, np.uint8), archs=RDNA),
    Case("v_dot4_u32_u8 D, A, B, C", "u32", ("u32",) * 3, lambda a, b, c: dot_bytes(a, b, c, np.uint8, np.uint8)),
    Case("v_pk_add_u16 D, A, B", "u32", ("u32", "u32"), pairs(lambda a, b: a + b, np.uint16)),
    Case("v_pk_mul_lo_u16 D, A, B", "u32", ("u32", "u32"), pairs(lambda a, b: a * b, np.uint16)),
    Case("v_pk_max_i16 D, A, B", "u32", ("u32", "u32"), pairs(np.maximum, np.int16)),
    Case("v_pk_add_f16 D, A, B", "u32", ("halves", "halves"), pairs(lambda a, b: a + b, np.float16)),
    Case("v_pk_mul_f16 D, A, B", "u32", ("halves", "halves"), pairs(lambda a, b: a * b, np.float16)),
    Case("v_pk_add_f16 D, A, B op_sel:[1,0] op_sel_hi:[0,1]", "u32", ("halves", "halves"),
         lambda a, b: ((a >> U(16) | a << U(16)).view(H) + b.view(H)).view(U)),
    Case("v_pk_add_f16 D, A, B neg_lo:[1,0] neg_hi:[0,0]", "u32", ("halves", "halves"),
         lambda a, b: ((a ^ U(0x8000)).view(H) + b.view(H)).view(U)),
    Case("v_fma_mix_f32 D, A, B, C op_sel:[1,0,0] op_sel_hi:[1,0,0]", "f32", ("halves", "f32", "f32"),
         lambda a, b, c: fma32((a >> U(16)).astype(np.uint16).view(H).astype(F), b, c), archs=RDNA + " gfx9"),
    Case("v_mad_u64_u32 D, vcc_lo, A, B, CC", "u64", ("u32", "u32", "u64"),
         lambda a, b, c: a.astype(np.uint64) * b + c, archs="gfx11"),
    Case("v_mov_b32_dpp D, A quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", "u32", ("u32",),
         lambda a: a.reshape(-1, 4)[:, ::-1].reshape(-1)),
    Case("v_mov_b32_dpp D, A row_ror:4 row_mask:0xf bank_mask:0xf", "u32", ("u32",),
         lambda a: np.roll(a.reshape(-1, 16), 4, 1).reshape(-1)),
    Case("v_add_f32_dpp D, A, B row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", "f32", ("f32", "f32"),
         lambda a, b: np.pad(a.reshape(-1, 16)[:, :-1], ((0, 0), (1, 0))).reshape(-1) + b),
    Case("v_add_f32_dpp D, A, B row_shl:2 row_mask:0xf bank_mask:0xf", "f32", ("f32", "f32", "old"),
         lambda a, b, d: np.where(np.arange(a.size) % 16 < 14, np.roll(a, -2) + b, d)),
    Case("v_mov_b32_dpp D, A row_mirror row_mask:0x5 bank_mask:0x3", "u32", ("u32", "old"),
         lambda a, d: np.where((np.arange(a.size) // 16 % 2 == 0) & (np.arange(a.size) % 16 < 8),
                               a.reshape(-1, 16)[:, ::-1].reshape(-1), d)),
    Case("v_mov_b32_dpp D, A row_share:5 row_mask:0xf bank_mask:0xf", "u32", ("u32",),
         lambda a: np.repeat(a.reshape(-1, 16)[:, 5], 16), archs=RDNA),
    Case("v_mov_b32_dpp D, A row_xmask:6 row_mask:0xf bank_mask:0xf", "u32", ("u32",),
         lambda a: a[np.arange(a.size) ^ 6], archs=RDNA),
    Case("v_mov_b32_dpp D, A dpp8:[7,6,5,4,3,2,1,0]", "u32", ("u32",), lambda a: a[np.arange(a.size) ^ 7], archs=RDNA),
    Case("ds_swizzle_b32 D, A offset:swizzle(SWAP,16)", "u32", ("u32",), lambda a: a[np.arange(a.size) ^ 16]),
    Case("ds_swizzle_b32 D, A offset:swizzle(BROADCAST,8,3)", "u32", ("u32",), lambda a: a[np.arange(a.size) & ~7 | 3]),
]  # fmt: skip

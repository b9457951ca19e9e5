"""What each scalar instruction computes: name, types of result and sources, a C++ expression, and what scc becomes.

`a`, `b` and `c` are the sources, `d` is what the destination held before, `r` the result.
scc: `-` stays, `nz` becomes whether `r` is not zero.
"""

from __future__ import annotations

from dataclasses import dataclass

TABLE = """
s_mov_b32            u32  u32      a                                     | -
s_mov_b64            u64  u64      a                                     | -
s_cmov_b32           u32  u32      scc ? a : d                           | -
s_cmov_b64           u64  u64      scc ? a : d                           | -
s_movk_i32           u32  k16      a                                     | -
s_cmovk_i32          u32  k16      scc ? a : d                           | -
s_not_b32            u32  u32      ~a                                    | nz
s_not_b64            u64  u64      ~a                                    | nz
s_and_b32            u32  u32 u32  a & b                                 | nz
s_and_b64            u64  u64 u64  a & b                                 | nz
s_or_b32             u32  u32 u32  a | b                                 | nz
s_or_b64             u64  u64 u64  a | b                                 | nz
s_xor_b32            u32  u32 u32  a ^ b                                 | nz
s_xor_b64            u64  u64 u64  a ^ b                                 | nz
s_nand_b32           u32  u32 u32  ~(a & b)                              | nz
s_nand_b64           u64  u64 u64  ~(a & b)                              | nz
s_nor_b32            u32  u32 u32  ~(a | b)                              | nz
s_nor_b64            u64  u64 u64  ~(a | b)                              | nz
s_xnor_b32           u32  u32 u32  ~(a ^ b)                              | nz
s_xnor_b64           u64  u64 u64  ~(a ^ b)                              | nz
s_and_not1_b32       u32  u32 u32  a & ~b                                | nz
s_and_not1_b64       u64  u64 u64  a & ~b                                | nz
s_or_not1_b32        u32  u32 u32  a | ~b                                | nz
s_or_not1_b64        u64  u64 u64  a | ~b                                | nz
s_lshl_b32           u32  u32 u32  a << (b & 31)                         | nz
s_lshl_b64           u64  u64 u32  a << (b & 63)                         | nz
s_lshr_b32           u32  u32 u32  a >> (b & 31)                         | nz
s_lshr_b64           u64  u64 u32  a >> (b & 63)                         | nz
s_ashr_i32           i32  i32 u32  a >> (b & 31)                         | nz
s_ashr_i64           i64  i64 u32  a >> (b & 63)                         | nz
s_bfm_b32            u32  u32 u32  ((1u << (a & 31)) - 1) << (b & 31)    | -
s_bfm_b64            u64  u32 u32  ((1ull << (a & 63)) - 1) << (b & 63)  | -
s_bfe_u32            u32  u32 u32  scalar_field(a, b)                    | nz
s_bfe_i32            i32  u32 u32  scalar_signed_field(a, b)             | nz
s_bfe_u64            u64  u64 u32  scalar_field(a, b)                    | nz
s_bfe_i64            i64  u64 u32  scalar_signed_field(a, b)             | nz
s_brev_b32           u32  u32      __builtin_bitreverse32(a)             | -
s_brev_b64           u64  u64      __builtin_bitreverse64(a)             | -
s_bcnt0_i32_b32      u32  u32      32 - __builtin_popcount(a)            | nz
s_bcnt0_i32_b64      u32  u64      64 - __builtin_popcountll(a)          | nz
s_bcnt1_i32_b32      u32  u32      __builtin_popcount(a)                 | nz
s_bcnt1_i32_b64      u32  u64      __builtin_popcountll(a)               | nz
s_ctz_i32_b32        u32  u32      a ? __builtin_ctz(a) : ~0u            | -
s_ctz_i32_b64        u32  u64      a ? __builtin_ctzll(a) : ~0u          | -
s_clz_i32_u32        u32  u32      a ? __builtin_clz(a) : ~0u            | -
s_clz_i32_u64        u32  u64      a ? __builtin_clzll(a) : ~0u          | -
s_cls_i32            u32  i32      scalar_sign_bits(a)                   | -
s_cls_i32_i64        u32  i64      scalar_sign_bits(a)                   | -
s_sext_i32_i8        i32  u32      (i32)(i8)a                            | -
s_sext_i32_i16       i32  u32      (i32)(i16)a                           | -
s_bitset0_b32        u32  u32      d & ~(1u << (a & 31))                 | -
s_bitset0_b64        u64  u32      d & ~(1ull << (a & 63))               | -
s_bitset1_b32        u32  u32      d | 1u << (a & 31)                    | -
s_bitset1_b64        u64  u32      d | 1ull << (a & 63)                  | -
s_bitreplicate_b64_b32 u64 u32     bits_doubled(a)                       | -
s_abs_i32            u32  i32      a < 0 ? 0u - (u32)a : (u32)a          | nz
s_absdiff_i32        u32  i32 i32  scalar_absolute((u32)a - (u32)b)      | nz
s_wqm_b32            u32  u32      whole_quads(a)                        | nz
s_wqm_b64            u64  u64      whole_quads(a)                        | nz
s_quadmask_b32       u32  u32      quad_mask(a)                          | nz
s_quadmask_b64       u64  u64      quad_mask(a)                          | nz
s_add_u32            u32  u32 u32  a + b                                 | r < a
s_add_i32            u32  u32 u32  a + b                                 | overflows_add(a, b)
s_addc_u32           u32  u32 u32  a + b + scc                           | ((u64)a + b + scc) >> 32
s_sub_u32            u32  u32 u32  a - b                                 | a < b
s_sub_i32            u32  u32 u32  a - b                                 | overflows_sub(a, b)
s_subb_u32           u32  u32 u32  a - b - scc                           | (u64)b + scc > a
s_addk_i32           u32  k16      d + a                                 | overflows_add(d, a)
s_mulk_i32           u32  k16      d * a                                 | -
s_add_nc_u64         u64  u64 u64  a + b                                 | -
s_sub_nc_u64         u64  u64 u64  a - b                                 | -
s_mul_u64            u64  u64 u64  a * b                                 | -
s_mul_i32            u32  u32 u32  a * b                                 | -
s_mul_hi_u32         u32  u32 u32  ((u64)a * b) >> 32                    | -
s_mul_hi_i32         u32  i32 i32  (u32)(((i64)a * b) >> 32)             | -
s_min_i32            i32  i32 i32  a < b ? a : b                         | a < b
s_max_i32            i32  i32 i32  a > b ? a : b                         | a > b
s_min_u32            u32  u32 u32  a < b ? a : b                         | a < b
s_max_u32            u32  u32 u32  a > b ? a : b                         | a > b
s_cselect_b32        u32  u32 u32  scc ? a : b                           | -
s_cselect_b64        u64  u64 u64  scc ? a : b                           | -
s_lshl1_add_u32      u32  u32 u32  (a << 1) + b                          | (((u64)a << 1) + b) >> 32
s_lshl2_add_u32      u32  u32 u32  (a << 2) + b                          | (((u64)a << 2) + b) >> 32
s_lshl3_add_u32      u32  u32 u32  (a << 3) + b                          | (((u64)a << 3) + b) >> 32
s_lshl4_add_u32      u32  u32 u32  (a << 4) + b                          | (((u64)a << 4) + b) >> 32
s_pack_ll_b32_b16    u32  u32 u32  (a & 0xffff) | b << 16                | -
s_pack_lh_b32_b16    u32  u32 u32  (a & 0xffff) | (b & 0xffff0000)       | -
s_pack_hh_b32_b16    u32  u32 u32  a >> 16 | (b & 0xffff0000)            | -
s_pack_hl_b32_b16    u32  u32 u32  a >> 16 | b << 16                     | -
s_add_f32            f32  f32 f32  a + b                                 | -
s_sub_f32            f32  f32 f32  a - b                                 | -
s_mul_f32            f32  f32 f32  a * b                                 | -
s_fmac_f32           f32  f32 f32  __builtin_fmaf(a, b, d)               | -
s_fmaak_f32          f32  f32 f32 f32  __builtin_fmaf(a, b, c)           | -
s_fmamk_f32          f32  f32 f32 f32  __builtin_fmaf(a, b, c)           | -
s_min_f32            f32  f32 f32  min((F32)(a), (F32)(b))[0]            | -
s_max_f32            f32  f32 f32  max((F32)(a), (F32)(b))[0]            | -
s_ceil_f32           f32  f32      __builtin_ceilf(a)                    | -
s_floor_f32          f32  f32      __builtin_floorf(a)                   | -
s_trunc_f32          f32  f32      __builtin_truncf(a)                   | -
s_rndne_f32          f32  f32      __builtin_roundevenf(a)               | -
s_cvt_f32_i32        f32  i32      (float)a                              | -
s_cvt_f32_u32        f32  u32      (float)a                              | -
s_cvt_i32_f32        i32  f32      to_i32((F32)(a))[0]                   | -
s_cvt_u32_f32        u32  f32      to_u32((F32)(a))[0]                   | -
s_cvt_f16_f32        u32  f32      bits_as<u16>((f16)a)                  | -
s_cvt_f32_f16        f32  u32      (float)bits_as<f16>((u16)a)           | -
s_cvt_hi_f32_f16     f32  u32      (float)bits_as<f16>((u16)(a >> 16))   | -
s_cvt_pk_rtz_f16_f32 u32  f32 f32  pack_toward_zero(a, b)                | -
s_add_f16            u32  h16 h16  bits_as<u16>((f16)(a + b))            | -
s_sub_f16            u32  h16 h16  bits_as<u16>((f16)(a - b))            | -
s_mul_f16            u32  h16 h16  bits_as<u16>((f16)(a * b))            | -
v_s_exp_f32          f32  f32      exp2((F32)(a))[0]                     | -
v_s_log_f32          f32  f32      log2((F32)(a))[0]                     | -
v_s_rcp_f32          f32  f32      1.0f / a                              | -
v_s_rsq_f32          f32  f32      1.0f / __builtin_sqrtf(a)             | -
v_s_sqrt_f32         f32  f32      __builtin_sqrtf(a)                    | -
"""

SAME = {
    "s_add_co_u32": "s_add_u32",
    "s_add_co_i32": "s_add_i32",
    "s_add_co_ci_u32": "s_addc_u32",
    "s_addk_co_i32": "s_addk_i32",
    "s_sub_co_u32": "s_sub_u32",
    "s_sub_co_i32": "s_sub_i32",
    "s_sub_co_ci_u32": "s_subb_u32",
    "s_andn2_b32": "s_and_not1_b32",
    "s_andn2_b64": "s_and_not1_b64",
    "s_orn2_b32": "s_or_not1_b32",
    "s_orn2_b64": "s_or_not1_b64",
    "s_ff1_i32_b32": "s_ctz_i32_b32",
    "s_ff1_i32_b64": "s_ctz_i32_b64",
    "s_flbit_i32_b32": "s_clz_i32_u32",
    "s_flbit_i32_b64": "s_clz_i32_u64",
    "s_flbit_i32": "s_cls_i32",
    "s_flbit_i32_i64": "s_cls_i32_i64",
    "s_min_num_f32": "s_min_f32",
    "s_max_num_f32": "s_max_f32",
}


@dataclass(frozen=True)
class ScalarOperation:
    """One row of the table."""

    result: str
    sources: tuple[str, ...]
    expression: str
    scc: str | None


_TYPES = {"u32", "i32", "u64", "i64", "f32", "k16", "h16"}


def _parse() -> dict[str, ScalarOperation]:
    operations: dict[str, ScalarOperation] = {}
    for line in TABLE.strip().splitlines():
        left, _, scc = line.rpartition(" | ")
        name, result, rest = left.split(None, 2)
        words = rest.split()
        count = next(i for i, word in enumerate(words) if word not in _TYPES)
        expression = rest.split(None, count)[count].strip()
        condition = {"-": None, "nz": "r != 0"}.get(scc.strip(), scc.strip())
        operations[name] = ScalarOperation(result, tuple(words[:count]), expression, condition)
    return operations | {name: operations[other] for name, other in SAME.items()}


OPERATIONS = _parse()

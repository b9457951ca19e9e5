"""What each vector instruction computes: name, type of the result, types of the sources, and a C++ expression.

In the expression `a`, `b`, `c` are the sources, `d` is what the destination held before; the functions are those of
native/kernel/. A second expression after `;` is the one for the `clamp` modifier where it saturates an integer.
"""

from __future__ import annotations

from dataclasses import dataclass

TABLE = """
v_mov_b32              u32  u32              a
v_mov_b64              u64  u64              a
v_mov_b16              u16  u16              a
v_accvgpr_read_b32     u32  u32              a
v_accvgpr_write_b32    u32  u32              a
v_accvgpr_mov_b32      u32  u32              a
v_not_b32              u32  u32              ~a
v_not_b16              u16  u16              ~a
v_and_b32              u32  u32 u32          a & b
v_or_b32               u32  u32 u32          a | b
v_xor_b32              u32  u32 u32          a ^ b
v_xnor_b32             u32  u32 u32          ~(a ^ b)
v_and_b16              u16  u16 u16          a & b
v_or_b16               u16  u16 u16          a | b
v_xor_b16              u16  u16 u16          a ^ b
v_xor3_b32             u32  u32 u32 u32      a ^ b ^ c
v_or3_b32              u32  u32 u32 u32      a | b | c
v_and_or_b32           u32  u32 u32 u32      (a & b) | c
v_lshl_or_b32          u32  u32 u32 u32      (a << (b & 31u)) | c
v_lshl_add_u32         u32  u32 u32 u32      (a << (b & 31u)) + c
v_lshl_add_u64         u64  u64 u32 u64      (a << convert<U64>(b & 7u)) + c
v_add_lshl_u32         u32  u32 u32 u32      (a + b) << (c & 31u)
v_add3_u32             u32  u32 u32 u32      a + b + c
v_xad_u32              u32  u32 u32 u32      (a ^ b) + c
v_bfi_b32              u32  u32 u32 u32      (a & b) | (~a & c)
v_bfe_u32              u32  u32 u32 u32      field(a, b, c)
v_bfe_i32              i32  u32 u32 u32      signed_field(a, b, c)
v_bfm_b32              u32  u32 u32          ((splat(1) << (a & 31u)) - 1u) << (b & 31u)
v_bfrev_b32            u32  u32              reverse_bits(a)
v_bcnt_u32_b32         u32  u32 u32          count_ones(a) + b
v_mbcnt_lo_u32_b32     u32  u32 u32          mask_count_low(a, b)
v_mbcnt_hi_u32_b32     u32  u32 u32          mask_count_high(a, b)
v_clz_i32_u32          u32  u32              leading_zeros(a)
v_ffbh_u32             u32  u32              leading_zeros(a)
v_ctz_i32_b32          u32  u32              trailing_zeros(a)
v_ffbl_b32             u32  u32              trailing_zeros(a)
v_cls_i32              u32  i32              leading_sign_bits(a)
v_ffbh_i32             u32  i32              leading_sign_bits(a)
v_alignbit_b32         u32  u32 u32 u32      low(join(b, a) >> convert<U64>(c & 31u))
v_alignbyte_b32        u32  u32 u32 u32      low(join(b, a) >> convert<U64>((c & 3u) * 8u))
v_perm_b32             u32  u32 u32 u32      permute_bytes(a, b, c)
v_lerp_u8              u32  u32 u32 u32      lerp_bytes(a, b, c)
v_lshlrev_b32          u32  u32 u32          b << (a & 31u)
v_lshrrev_b32          u32  u32 u32          b >> (a & 31u)
v_ashrrev_i32          i32  u32 i32          b >> (I32)(a & 31u)
v_lshlrev_b16          u16  u16 u16          b << (a & (u16)15)
v_lshrrev_b16          u16  u16 u16          b >> (a & (u16)15)
v_ashrrev_i16          i16  u16 i16          b >> (I16)(a & (u16)15)
v_lshlrev_b64          u64  u32 u64          b << convert<U64>(a & 63u)
v_lshrrev_b64          u64  u32 u64          b >> convert<U64>(a & 63u)
v_ashrrev_i64          i64  u32 i64          b >> convert<I64>(a & 63u)
v_add_nc_u32           u32  u32 u32          a + b ; add_saturating(a, b)
v_sub_nc_u32           u32  u32 u32          a - b ; sub_saturating(a, b)
v_subrev_nc_u32        u32  u32 u32          b - a ; sub_saturating(b, a)
v_add_u32              u32  u32 u32          a + b ; add_saturating(a, b)
v_sub_u32              u32  u32 u32          a - b ; sub_saturating(a, b)
v_subrev_u32           u32  u32 u32          b - a ; sub_saturating(b, a)
v_add_nc_i32           i32  i32 i32          a + b ; add_saturating(a, b)
v_sub_nc_i32           i32  i32 i32          a - b ; sub_saturating(a, b)
v_add_i32              i32  i32 i32          a + b ; add_saturating(a, b)
v_sub_i32              i32  i32 i32          a - b ; sub_saturating(a, b)
v_add_nc_u16           u16  u16 u16          a + b ; add_saturating(a, b)
v_sub_nc_u16           u16  u16 u16          a - b ; sub_saturating(a, b)
v_add_u16              u16  u16 u16          a + b ; add_saturating(a, b)
v_sub_u16              u16  u16 u16          a - b ; sub_saturating(a, b)
v_subrev_u16           u16  u16 u16          b - a ; sub_saturating(b, a)
v_add_nc_i16           i16  i16 i16          a + b ; add_saturating(a, b)
v_sub_nc_i16           i16  i16 i16          a - b ; sub_saturating(a, b)
v_add_i16              i16  i16 i16          a + b ; add_saturating(a, b)
v_sub_i16              i16  i16 i16          a - b ; sub_saturating(a, b)
v_mul_lo_u16           u16  u16 u16          a * b
v_mad_u16              u16  u16 u16 u16      a * b + c
v_mad_i16              i16  i16 i16 i16      a * b + c
v_mad_u32_u16          u32  u16 u16 u32      convert<U32>(a) * convert<U32>(b) + c
v_mad_i32_i16          i32  i16 i16 i32      convert<I32>(a) * convert<I32>(b) + c
v_mul_lo_u32           u32  u32 u32          a * b
v_mul_hi_u32           u32  u32 u32          multiply_high(a, b)
v_mul_hi_i32           i32  i32 i32          multiply_high(a, b)
v_mul_u32_u24          u32  u32 u32          u24(a) * u24(b)
v_mul_hi_u32_u24       u32  u32 u32          multiply_high(u24(a), u24(b))
v_mad_u32_u24          u32  u32 u32 u32      u24(a) * u24(b) + c
v_mul_i32_i24          i32  i32 i32          i24(a) * i24(b)
v_mul_hi_i32_i24       i32  i32 i32          multiply_high(i24(a), i24(b))
v_mad_i32_i24          i32  i32 i32 i32      i24(a) * i24(b) + c
v_min_u32              u32  u32 u32          imin(a, b)
v_max_u32              u32  u32 u32          imax(a, b)
v_min_i32              i32  i32 i32          imin(a, b)
v_max_i32              i32  i32 i32          imax(a, b)
v_min_u16              u16  u16 u16          imin(a, b)
v_max_u16              u16  u16 u16          imax(a, b)
v_min_i16              i16  i16 i16          imin(a, b)
v_max_i16              i16  i16 i16          imax(a, b)
v_min3_u32             u32  u32 u32 u32      imin(imin(a, b), c)
v_max3_u32             u32  u32 u32 u32      imax(imax(a, b), c)
v_med3_u32             u32  u32 u32 u32      imedian(a, b, c)
v_min3_i32             i32  i32 i32 i32      imin(imin(a, b), c)
v_max3_i32             i32  i32 i32 i32      imax(imax(a, b), c)
v_med3_i32             i32  i32 i32 i32      imedian(a, b, c)
v_min3_u16             u16  u16 u16 u16      imin(imin(a, b), c)
v_max3_u16             u16  u16 u16 u16      imax(imax(a, b), c)
v_med3_u16             u16  u16 u16 u16      imedian(a, b, c)
v_min3_i16             i16  i16 i16 i16      imin(imin(a, b), c)
v_max3_i16             i16  i16 i16 i16      imax(imax(a, b), c)
v_med3_i16             i16  i16 i16 i16      imedian(a, b, c)
v_maxmin_u32           u32  u32 u32 u32      imin(imax(a, b), c)
v_minmax_u32           u32  u32 u32 u32      imax(imin(a, b), c)
v_maxmin_i32           i32  i32 i32 i32      imin(imax(a, b), c)
v_minmax_i32           i32  i32 i32 i32      imax(imin(a, b), c)
v_sad_u32              u32  u32 u32 u32      absolute_difference(a, b) + c
v_sad_u8               u32  u32 u32 u32      sum_of_byte_differences(a, b) + c
v_dot4_u32_u8          u32  u32 u32 u32      dot<8, false, false>(a, b, c) ; dot_saturating<8, false, false>(a, b, c)
v_dot4_i32_i8          u32  u32 u32 u32      dot<8, true, true>(a, b, c) ; dot_saturating<8, true, true>(a, b, c)
v_dot4c_i32_i8         u32  u32 u32          dot<8, true, true>(a, b, d)
v_dot8_u32_u4          u32  u32 u32 u32      dot<4, false, false>(a, b, c) ; dot_saturating<4, false, false>(a, b, c)
v_dot8_i32_i4          u32  u32 u32 u32      dot<4, true, true>(a, b, c) ; dot_saturating<4, true, true>(a, b, c)
v_dot8c_i32_i4         u32  u32 u32          dot<4, true, true>(a, b, d)
v_dot2_i32_i16         i32  u32 u32 i32      dot2_i16(a, b, c)
v_dot2c_i32_i16        i32  u32 u32          dot2_i16(a, b, d)
v_dot2_u32_u16         u32  u32 u32 u32      dot2_u16(a, b, c)
v_dot2_f32_f16         f32  u32 u32 f32      dot2_f16(a, b, c)
v_dot2c_f32_f16        f32  u32 u32          dot2_f16(a, b, d)
v_dot2acc_f32_f16      f32  u32 u32          dot2_f16(a, b, d)
v_dot2_f32_bf16        f32  u32 u32 f32      dot2_bf16(a, b, c)
v_dot2c_f32_bf16       f32  u32 u32          dot2_bf16(a, b, d)
v_dot2_f16_f16         f16  u32 u32 f16      dot2_narrow_f16(a, b, c)
v_dot2_bf16_bf16       u16  u32 u32 u16      dot2_narrow_bf16(a, b, c)
v_add_f32              f32  f32 f32          a + b
v_sub_f32              f32  f32 f32          a - b
v_subrev_f32           f32  f32 f32          b - a
v_mul_f32              f32  f32 f32          a * b
v_mul_legacy_f32       f32  f32 f32          zero_wins(a, b, a * b)
v_mul_dx9_zero_f32     f32  f32 f32          zero_wins(a, b, a * b)
v_fma_dx9_zero_f32     f32  f32 f32 f32      zero_wins(a, b, a * b) == 0.0f ? c : fma(a, b, c)
v_fma_f32              f32  f32 f32 f32      fma(a, b, c)
v_fmac_f32             f32  f32 f32          fma(a, b, d)
v_fmaak_f32            f32  f32 f32 f32      fma(a, b, c)
v_fmamk_f32            f32  f32 f32 f32      fma(a, b, c)
v_mad_f32              f32  f32 f32 f32      a * b + c
v_mac_f32              f32  f32 f32          a * b + d
v_min_f32              f32  f32 f32          min(a, b)
v_max_f32              f32  f32 f32          max(a, b)
v_min3_f32             f32  f32 f32 f32      min3(a, b, c)
v_max3_f32             f32  f32 f32 f32      max3(a, b, c)
v_med3_f32             f32  f32 f32 f32      median(a, b, c)
v_maxmin_f32           f32  f32 f32 f32      min(max(a, b), c)
v_minmax_f32           f32  f32 f32 f32      max(min(a, b), c)
v_maximum_f32          f32  f32 f32          maximum(a, b)
v_minimum_f32          f32  f32 f32          minimum(a, b)
v_maximum3_f32         f32  f32 f32 f32      maximum(maximum(a, b), c)
v_minimum3_f32         f32  f32 f32 f32      minimum(minimum(a, b), c)
v_maximumminimum_f32   f32  f32 f32 f32      minimum(maximum(a, b), c)
v_minimummaximum_f32   f32  f32 f32 f32      maximum(minimum(a, b), c)
v_rcp_f32              f32  f32              rcp(a)
v_rcp_iflag_f32        f32  f32              rcp(a)
v_rsq_f32              f32  f32              rsq(a)
v_sqrt_f32             f32  f32              sqrt(a)
v_exp_f32              f32  f32              exp2(a)
v_log_f32              f32  f32              log2(a)
v_sin_f32              f32  f32              sin_turns(a)
v_cos_f32              f32  f32              cos_turns(a)
v_fract_f32            f32  f32              fract(a)
v_trunc_f32            f32  f32              trunc(a)
v_ceil_f32             f32  f32              ceil(a)
v_floor_f32            f32  f32              floor(a)
v_rndne_f32            f32  f32              rndne(a)
v_ldexp_f32            f32  f32 i32          ldexp(a, b)
v_frexp_mant_f32       f32  f32              frexp_mantissa(a)
v_frexp_exp_i32_f32    i32  f32              frexp_exponent(a)
v_div_fixup_f32        f32  f32 f32 f32      div_fixup(a, b, c)
v_div_fmas_f32         f32  f32 f32 f32      div_fmas(a, b, c, VCC)
v_add_f64              f64  f64 f64          a + b
v_mul_f64              f64  f64 f64          a * b
v_fma_f64              f64  f64 f64 f64      fma(a, b, c)
v_fmac_f64             f64  f64 f64          fma(a, b, d)
v_min_f64              f64  f64 f64          min(a, b)
v_max_f64              f64  f64 f64          max(a, b)
v_maximum_f64          f64  f64 f64          maximum(a, b)
v_minimum_f64          f64  f64 f64          minimum(a, b)
v_rcp_f64              f64  f64              rcp(a)
v_rsq_f64              f64  f64              rsq(a)
v_sqrt_f64             f64  f64              sqrt(a)
v_fract_f64            f64  f64              fract(a)
v_trunc_f64            f64  f64              trunc(a)
v_ceil_f64             f64  f64              ceil(a)
v_floor_f64            f64  f64              floor(a)
v_rndne_f64            f64  f64              rndne(a)
v_ldexp_f64            f64  f64 i32          ldexp(a, b)
v_frexp_mant_f64       f64  f64              frexp_mantissa(a)
v_frexp_exp_i32_f64    i32  f64              frexp_exponent(a)
v_div_fixup_f64        f64  f64 f64 f64      div_fixup(a, b, c)
v_div_fmas_f64         f64  f64 f64 f64      div_fmas(a, b, c, VCC)
v_trig_preop_f64       f64  f64 u32          trig_preop(a, b)
v_add_f16              f16  f16 f16          a + b
v_sub_f16              f16  f16 f16          a - b
v_subrev_f16           f16  f16 f16          b - a
v_mul_f16              f16  f16 f16          a * b
v_fma_f16              f16  f16 f16 f16      fma(a, b, c)
v_fmac_f16             f16  f16 f16          fma(a, b, d)
v_fmaak_f16            f16  f16 f16 f16      fma(a, b, c)
v_fmamk_f16            f16  f16 f16 f16      fma(a, b, c)
v_mad_f16              f16  f16 f16 f16      a * b + c
v_mac_f16              f16  f16 f16          a * b + d
v_min_f16              f16  f16 f16          min(a, b)
v_max_f16              f16  f16 f16          max(a, b)
v_min3_f16             f16  f16 f16 f16      min3(a, b, c)
v_max3_f16             f16  f16 f16 f16      max3(a, b, c)
v_med3_f16             f16  f16 f16 f16      median(a, b, c)
v_maxmin_f16           f16  f16 f16 f16      min(max(a, b), c)
v_minmax_f16           f16  f16 f16 f16      max(min(a, b), c)
v_maximum_f16          f16  f16 f16          maximum(a, b)
v_minimum_f16          f16  f16 f16          minimum(a, b)
v_maximum3_f16         f16  f16 f16 f16      maximum(maximum(a, b), c)
v_minimum3_f16         f16  f16 f16 f16      minimum(minimum(a, b), c)
v_rcp_f16              f16  f16              rcp(a)
v_rsq_f16              f16  f16              rsq(a)
v_sqrt_f16             f16  f16              sqrt(a)
v_exp_f16              f16  f16              exp2(a)
v_log_f16              f16  f16              log2(a)
v_sin_f16              f16  f16              sin_turns(a)
v_cos_f16              f16  f16              cos_turns(a)
v_fract_f16            f16  f16              fract(a)
v_trunc_f16            f16  f16              trunc(a)
v_ceil_f16             f16  f16              ceil(a)
v_floor_f16            f16  f16              floor(a)
v_rndne_f16            f16  f16              rndne(a)
v_ldexp_f16            f16  f16 i16          ldexp(a, b)
v_frexp_mant_f16       f16  f16              convert<F16>(frexp_mantissa(convert<F32>(a)))
v_frexp_exp_i16_f16    i16  f16              convert<I16>(frexp_exponent(convert<F32>(a)))
v_div_fixup_f16        f16  f16 f16 f16      div_fixup(a, b, c)
v_cvt_f32_i32          f32  i32              convert<F32>(a)
v_cvt_f32_u32          f32  u32              convert<F32>(a)
v_cvt_f64_i32          f64  i32              convert<F64>(a)
v_cvt_f64_u32          f64  u32              convert<F64>(a)
v_cvt_f64_f32          f64  f32              convert<F64>(a)
v_cvt_f32_f64          f32  f64              convert<F32>(a)
v_cvt_i32_f32          i32  f32              to_i32(a)
v_cvt_u32_f32          u32  f32              to_u32(a)
v_cvt_i32_f64          i32  f64              to_i32(a)
v_cvt_u32_f64          u32  f64              to_u32(a)
v_cvt_nearest_i32_f32  i32  f32              to_i32(floor(a + 0.5f))
v_cvt_rpi_i32_f32      i32  f32              to_i32(floor(a + 0.5f))
v_cvt_floor_i32_f32    i32  f32              to_i32(floor(a))
v_cvt_flr_i32_f32      i32  f32              to_i32(floor(a))
v_cvt_f16_f32          f16  f32              convert<F16>(a)
v_cvt_f32_f16          f32  f16              convert<F32>(a)
v_cvt_f16_u16          f16  u16              convert<F16>(convert<F32>(a))
v_cvt_f16_i16          f16  i16              convert<F16>(convert<F32>(a))
v_cvt_u16_f16          u16  f16              to_u16(a)
v_cvt_i16_f16          i16  f16              to_i16(a)
v_cvt_i32_i16          i32  i16              convert<I32>(a)
v_cvt_u32_u16          u32  u16              convert<U32>(a)
v_cvt_f32_bf16         f32  u16              from_bf16(a)
v_cvt_f32_ubyte0       f32  u32              convert<F32>(a & 0xffu)
v_cvt_f32_ubyte1       f32  u32              convert<F32>((a >> 8) & 0xffu)
v_cvt_f32_ubyte2       f32  u32              convert<F32>((a >> 16) & 0xffu)
v_cvt_f32_ubyte3       f32  u32              convert<F32>(a >> 24)
v_cvt_off_f32_i4       f32  u32              convert<F32>(extend(a, 4)) * 0.0625f
v_cvt_pk_u8_f32        u32  f32 u32 u32      pack_byte(a, b, c)
v_cvt_pk_rtz_f16_f32   u32  f32 f32          halves((U16)to_f16_toward_zero(a), (U16)to_f16_toward_zero(b))
v_cvt_pkrtz_f16_f32    u32  f32 f32          halves((U16)to_f16_toward_zero(a), (U16)to_f16_toward_zero(b))
v_cvt_pk_bf16_f32      u32  f32 f32          halves(to_bf16(a), to_bf16(b))
v_cvt_pk_i16_f32       u32  f32 f32          halves((U16)to_i16(a), (U16)to_i16(b))
v_cvt_pk_u16_f32       u32  f32 f32          halves(to_u16(a), to_u16(b))
v_cvt_pk_u16_u32       u32  u32 u32          halves(saturate_u16(a), saturate_u16(b))
v_cvt_pk_i16_i32       u32  i32 i32          halves(saturate16(a), saturate16(b))
v_cvt_pk_norm_i16_f32  u32  f32 f32          halves(norm_i16(a), norm_i16(b))
v_cvt_pk_norm_u16_f32  u32  f32 f32          halves(norm_u16(a), norm_u16(b))
v_pack_b32_f16         u32  u16 u16          halves(a, b)
v_cndmask_b32          u32  u32 u32 mask     select(c, b, a)
v_cndmask_b16          u16  u16 u16 mask     select(c, b, a)
"""

# The same operation under another name.
SAME = {
    "v_max_num_f32": "v_max_f32",
    "v_min_num_f32": "v_min_f32",
    "v_max3_num_f32": "v_max3_f32",
    "v_min3_num_f32": "v_min3_f32",
    "v_med3_num_f32": "v_med3_f32",
    "v_maxmin_num_f32": "v_maxmin_f32",
    "v_minmax_num_f32": "v_minmax_f32",
    "v_max_num_f16": "v_max_f16",
    "v_min_num_f16": "v_min_f16",
    "v_max3_num_f16": "v_max3_f16",
    "v_min3_num_f16": "v_min3_f16",
    "v_med3_num_f16": "v_med3_f16",
    "v_maxmin_num_f16": "v_maxmin_f16",
    "v_minmax_num_f16": "v_minmax_f16",
    "v_max_num_f64": "v_max_f64",
    "v_min_num_f64": "v_min_f64",
    "v_madmk_f32": "v_mad_f32",
    "v_madak_f32": "v_mad_f32",
    "v_mad_legacy_u16": "v_mad_u16",
    "v_mad_legacy_i16": "v_mad_i16",
    "v_mad_legacy_f16": "v_mad_f16",
    "v_fma_legacy_f16": "v_fma_f16",
    "v_div_fixup_legacy_f16": "v_div_fixup_f16",
}

# Two 16-bit (or, in register pairs, 32-bit) operations side by side: the table above holds what each half does.
PACKED = {
    "v_pk_add_f16": "v_add_f16",
    "v_pk_mul_f16": "v_mul_f16",
    "v_pk_fma_f16": "v_fma_f16",
    "v_pk_fmac_f16": "v_fmac_f16",
    "v_pk_min_f16": "v_min_f16",
    "v_pk_max_f16": "v_max_f16",
    "v_pk_min_num_f16": "v_min_f16",
    "v_pk_max_num_f16": "v_max_f16",
    "v_pk_minimum_f16": "v_minimum_f16",
    "v_pk_maximum_f16": "v_maximum_f16",
    "v_pk_add_u16": "v_add_nc_u16",
    "v_pk_add_i16": "v_add_nc_i16",
    "v_pk_sub_u16": "v_sub_nc_u16",
    "v_pk_sub_i16": "v_sub_nc_i16",
    "v_pk_mul_lo_u16": "v_mul_lo_u16",
    "v_pk_mad_u16": "v_mad_u16",
    "v_pk_mad_i16": "v_mad_i16",
    "v_pk_min_u16": "v_min_u16",
    "v_pk_max_u16": "v_max_u16",
    "v_pk_min_i16": "v_min_i16",
    "v_pk_max_i16": "v_max_i16",
    "v_pk_lshlrev_b16": "v_lshlrev_b16",
    "v_pk_lshrrev_b16": "v_lshrrev_b16",
    "v_pk_ashrrev_i16": "v_ashrrev_i16",
    "v_pk_add_f32": "v_add_f32",
    "v_pk_mul_f32": "v_mul_f32",
    "v_pk_fma_f32": "v_fma_f32",
    "v_pk_mov_b32": "v_mov_b32",
}


@dataclass(frozen=True)
class Operation:
    """One row of the table."""

    result: str
    sources: tuple[str, ...]
    expression: str
    saturating: str | None


def _parse() -> dict[str, Operation]:
    operations: dict[str, Operation] = {}
    for line in TABLE.strip().splitlines():
        name, result, rest = line.split(None, 2)
        words = rest.split()
        count = next(i for i, word in enumerate(words) if word not in _TYPES)
        expression = rest.split(None, count)[count]
        plain, _, saturating = expression.partition(" ; ")
        operations[name] = Operation(result, tuple(words[:count]), plain.strip(), saturating.strip() or None)
    return operations | {name: operations[other] for name, other in SAME.items()}


_TYPES = {"u32", "i32", "f32", "u64", "i64", "f64", "u16", "i16", "f16", "mask"}
OPERATIONS = _parse()

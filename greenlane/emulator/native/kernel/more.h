// The rarer vector operations: dot products of halves, packing, legacy multiplication.

#pragma once

#include "float.h"
#include "integer.h"

namespace greenlane {

// The products of halves are exact in single precision; each sum is rounded, as in two fused steps.
inline F32 dot2_f16(U32 a, U32 b, F32 c) {
  const F32 first = fma(convert<F32>((F16)low16(a)), convert<F32>((F16)low16(b)), c);
  return fma(convert<F32>((F16)high16(a)), convert<F32>((F16)high16(b)), first);
}
inline F32 dot2_bf16(U32 a, U32 b, F32 c) {
  const F32 first = fma((F32)(a << 16), (F32)(b << 16), c);
  return fma((F32)(a & 0xffff0000u), (F32)(b & 0xffff0000u), first);
}

// With a narrow sum each product and each sum is rounded to its format.
inline F16 dot2_narrow_f16(U32 a, U32 b, F16 c) {
  const F16 low_product = (F16)low16(a) * (F16)low16(b), first = c + low_product;
  const F16 high_product = (F16)high16(a) * (F16)high16(b);
  return first + high_product;
}
inline U16 dot2_narrow_bf16(U32 a, U32 b, U16 c) {
  const U16 low_product = to_bf16((F32)(a << 16) * (F32)(b << 16));
  const U16 first = to_bf16(from_bf16(c) + from_bf16(low_product));
  const U16 high_product = to_bf16((F32)(a & 0xffff0000u) * (F32)(b & 0xffff0000u));
  return to_bf16(from_bf16(first) + from_bf16(high_product));
}

// Zero times anything is zero, also infinity and NaN.
inline F32 zero_wins(F32 a, F32 b, F32 product) {
  return (a == 0.0f) | (b == 0.0f) ? (F32)(0.0f) : product;
}

inline U32 lerp_bytes(U32 a, U32 b, U32 round) {
  U32 result = splat(0);
  for (int k = 0; k < 32; k += 8) {
    const U32 sum = ((a >> k) & 0xffu) + ((b >> k) & 0xffu) + ((round >> k) & 1u);
    result |= (sum >> 1) << k;
  }
  return result;
}

inline U32 pack_byte(F32 value, U32 position, U32 old) {
  const U32 byte = imin(to_u32(value), splat(255)), shift = (position & 3u) * 8u;
  return (old & ~(splat(255) << shift)) | (byte << shift);
}
inline U16 saturate16(I32 x) {
  return convert<U16>((U32)imax(imin(x, (I32)(32767)), (I32)(-32768)));
}
inline U16 saturate_u16(U32 x) {
  return convert<U16>(imin(x, splat(65535)));
}
inline U16 norm_i16(F32 x) {
  return (U16)to_i16(x != x ? x : rndne(min(max(x, (F32)(-1.0f)), (F32)(1.0f)) * 32767.0f));
}
inline U16 norm_u16(F32 x) {
  return to_u16(x != x ? x : rndne(min(max(x, (F32)(0.0f)), (F32)(1.0f)) * 65535.0f));
}

}  // namespace greenlane

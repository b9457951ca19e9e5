// Floating-point operations as the vector unit defines them: NaN rules, signed zeros, conversions that saturate.

#pragma once

#include <math.h>

#include "lanes.h"

namespace greenlane {

inline F32 neg(F32 x) {
  return (F32)((U32)x ^ 0x80000000u);
}
inline F64 neg(F64 x) {
  return (F64)((U64)x ^ 0x8000000000000000ull);
}
inline F16 neg(F16 x) {
  return (F16)((U16)x ^ (u16)0x8000);
}
inline F32 magnitude(F32 x) {
  return (F32)((U32)x & 0x7fffffffu);
}
inline F64 magnitude(F64 x) {
  return (F64)((U64)x & 0x7fffffffffffffffull);
}
inline F16 magnitude(F16 x) {
  return (F16)((U16)x & (u16)0x7fff);
}

inline F32 fma(F32 a, F32 b, F32 c) {
  return __builtin_elementwise_fma(a, b, c);
}
inline F64 fma(F64 a, F64 b, F64 c) {
  return __builtin_elementwise_fma(a, b, c);
}
#ifdef __AVX512FP16__
inline F16 fma(F16 a, F16 b, F16 c) {
  return __builtin_elementwise_fma(a, b, c);
}
#else
// The product of two halves is exact in double, and the sum is rounded to odd enough for a second rounding to half.
inline F16 fma(F16 a, F16 b, F16 c) {
  return convert<F16>(convert<F64>(a) * convert<F64>(b) + convert<F64>(c));
}
#endif

// The larger number; a NaN yields to a number, and +0 is larger than -0.
template <class F, class U>
inline F larger(F a, F b) {
  F chosen = a > b ? a : b;
  chosen = a == b ? (F)((U)a & (U)b) : chosen;
  chosen = a != a ? b : chosen;
  return b != b ? a : chosen;
}
template <class F, class U>
inline F smaller(F a, F b) {
  F chosen = a < b ? a : b;
  chosen = a == b ? (F)((U)a | (U)b) : chosen;
  chosen = a != a ? b : chosen;
  return b != b ? a : chosen;
}
inline F32 max(F32 a, F32 b) {
  return larger<F32, U32>(a, b);
}
inline F64 max(F64 a, F64 b) {
  return larger<F64, U64>(a, b);
}
inline F16 max(F16 a, F16 b) {
  return larger<F16, U16>(a, b);
}
inline F32 min(F32 a, F32 b) {
  return smaller<F32, U32>(a, b);
}
inline F64 min(F64 a, F64 b) {
  return smaller<F64, U64>(a, b);
}
inline F16 min(F16 a, F16 b) {
  return smaller<F16, U16>(a, b);
}
template <class F>
inline F max3(F a, F b, F c) {
  return max(max(a, b), c);
}
template <class F>
inline F min3(F a, F b, F c) {
  return min(min(a, b), c);
}
// The middle one; with a NaN among them the smallest of the three.
template <class F>
inline F median(F a, F b, F c) {
  const F middle = max(min(a, b), min(max(a, b), c));
  return (a != a) | (b != b) | (c != c) ? min3(a, b, c) : middle;
}

// IEEE-754 maximum and minimum: a NaN wins.
template <class F>
inline F maximum(F a, F b) {
  const F chosen = max(a, b);
  return (a != a) ? a : (b != b) ? b : chosen;
}
template <class F>
inline F minimum(F a, F b) {
  const F chosen = min(a, b);
  return (a != a) ? a : (b != b) ? b : chosen;
}

// The clamp modifier: to [0, 1], NaN to 0.
template <class F>
inline F clamped(F x) {
  const F zero = (F)(0), one = (F)(1);
  F result = x > zero ? x : zero;
  return result < one ? result : one;
}

inline F32 sqrt(F32 x) {
  return __builtin_elementwise_sqrt(x);
}
inline F64 sqrt(F64 x) {
  return __builtin_elementwise_sqrt(x);
}
inline F16 sqrt(F16 x) {
  return convert<F16>(__builtin_elementwise_sqrt(convert<F32>(x)));
}
template <class F>
inline F trunc(F x) {
  return __builtin_elementwise_trunc(x);
}
template <class F>
inline F floor(F x) {
  return __builtin_elementwise_floor(x);
}
template <class F>
inline F ceil(F x) {
  return __builtin_elementwise_ceil(x);
}
template <class F>
inline F rndne(F x) {
  return __builtin_elementwise_roundeven(x);
}
inline F32 fract(F32 x) {
  const F32 below_one = (F32)splat(0x3f7fffffu);
  const F32 part = x - floor(x);
  return part < below_one ? part : (part != part ? part : below_one);
}
inline F64 fract(F64 x) {
  const F64 below_one = (F64)splat64(0x3fefffffffffffffull);
  const F64 part = x - floor(x);
  return part < below_one ? part : (part != part ? part : below_one);
}
inline F16 fract(F16 x) {
  const F32 wide = convert<F32>(x);
  const F32 part = wide - floor(wide);
  return convert<F16>(part != part ? part : min(part, (F32)(0.99951171875f)));
}

inline F32 rcp(F32 x) {
  return 1.0f / x;
}
inline F64 rcp(F64 x) {
  return 1.0 / x;
}
inline F16 rcp(F16 x) {
  return convert<F16>(1.0f / convert<F32>(x));
}
inline F32 rsq(F32 x) {
  return 1.0f / sqrt(x);
}
inline F64 rsq(F64 x) {
  return 1.0 / sqrt(x);
}
inline F16 rsq(F16 x) {
  return convert<F16>(1.0f / sqrt(convert<F32>(x)));
}

// Two to the x: the nearest integer apart, a polynomial for the rest. Results below the normal range are zero.
inline F32 exp2(F32 x) {
  const F32 inside = min(max(x, (F32)(-126.0f)), (F32)(128.0f));
  const F32 whole = min(rndne(inside), (F32)(127.0f));
  const F32 part = inside - whole;
  constexpr float coefficients[] = {1.5403530e-4f, 1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f,
                                    2.4022651e-1f, 6.9314718e-1f, 1.0f};
  F32 sum = (F32)(1.5252734e-5f);
  for (const float c : coefficients) sum = fma(sum, part, (F32)(c));
  const F32 scale = (F32)((convert<I32>(whole) + 127) << 23);
  F32 result = sum * scale;
  result = x < -126.0f ? (F32)(0.0f) : result;
  result = x >= 128.0f ? (F32)(INFINITY) : result;
  return x != x ? x : result;
}
inline F16 exp2(F16 x) {
  return lanewise<F16>([](f16 v) { return (f16)::exp2((double)v); }, x);
}
inline F32 log2(F32 x) {
  return lanewise<F32>([](float v) { return (float)::log2((double)v); }, x);
}
inline F16 log2(F16 x) {
  return lanewise<F16>([](f16 v) { return (f16)::log2((double)v); }, x);
}
// Arguments in turns, as the hardware takes them.
constexpr double kTurn = 6.283185307179586;
inline F32 sin_turns(F32 x) {
  return lanewise<F32>([](float v) { return (float)::sin(::fmod((double)v, 1.0) * kTurn); }, x);
}
inline F32 cos_turns(F32 x) {
  return lanewise<F32>([](float v) { return (float)::cos(::fmod((double)v, 1.0) * kTurn); }, x);
}
inline F16 sin_turns(F16 x) {
  return convert<F16>(sin_turns(convert<F32>(x)));
}
inline F16 cos_turns(F16 x) {
  return convert<F16>(cos_turns(convert<F32>(x)));
}

inline F32 ldexp(F32 x, I32 e) {
  return lanewise<F32>([](float v, i32 n) { return ::ldexpf(v, n); }, x, e);
}
inline F64 ldexp(F64 x, I32 e) {
  return lanewise<F64>([](double v, i32 n) { return ::ldexp(v, n); }, x, e);
}
inline F16 ldexp(F16 x, I16 e) {
  return lanewise<F16>([](f16 v, i16 n) { return (f16)::ldexp((double)v, n); }, x, e);
}

inline F32 frexp_mantissa(F32 x) {
  return lanewise<F32>(
      [](float v) {
        int e;
        return ::isfinite(v) ? ::frexpf(v, &e) : v;
      },
      x);
}
inline F64 frexp_mantissa(F64 x) {
  return lanewise<F64>(
      [](double v) {
        int e;
        return ::isfinite(v) ? ::frexp(v, &e) : v;
      },
      x);
}
inline I32 frexp_exponent(F32 x) {
  return lanewise<I32>(
      [](float v) {
        int e = 0;
        if (::isfinite(v)) (void)::frexpf(v, &e);
        return e;
      },
      x);
}
inline I32 frexp_exponent(F64 x) {
  return lanewise<I32>(
      [](double v) {
        int e = 0;
        if (::isfinite(v)) (void)::frexp(v, &e);
        return e;
      },
      x);
}

// Conversions to integers truncate, saturate and send NaN to zero.
inline U32 to_u32(F32 x) {
  const F32 inside = x > 0.0f ? x : (F32)(0.0f);
  const U32 result = convert<U32>(inside < 4294967296.0f ? inside : (F32)(0.0f));
  return inside >= 4294967296.0f ? splat(~0u) : result;
}
inline I32 to_i32(F32 x) {
  const I32 result = convert<I32>(magnitude(x) < 2147483648.0f ? x : (F32)(0.0f));
  const I32 upper = x >= 2147483648.0f ? (I32)(0x7fffffff) : result;
  return x <= -2147483648.0f ? (I32)(-0x7fffffff - 1) : upper;
}
inline U32 to_u32(F64 x) {
  return lanewise<U32>([](double v) -> u32 { return v >= 4294967295.0 ? ~0u : v > 0 ? (u32)v : 0; }, x);
}
inline I32 to_i32(F64 x) {
  return lanewise<I32>(
      [](double v) -> i32 {
        return v >= 2147483647.0 ? 0x7fffffff : v <= -2147483648.0 ? -0x7fffffff - 1 : v == v ? (i32)v : 0;
      },
      x);
}
inline U16 to_u16(F32 x) {
  return convert<U16>(to_u32(x != x ? x : min(x, (F32)(65535.0f))));
}
inline I16 to_i16(F32 x) {
  return convert<I16>(to_i32(x != x ? x : min(max(x, (F32)(-32768.0f)), (F32)(32767.0f))));
}
inline U16 to_u16(F16 x) {
  return to_u16(convert<F32>(x));
}
inline I16 to_i16(F16 x) {
  return to_i16(convert<F32>(x));
}

// Half precision with the mantissa cut off; overflow stays at the largest finite half.
inline F16 to_f16_toward_zero(F32 x) {
  const U16 nearest = (U16)convert<F16>(x);
  const F32 back = convert<F32>((F16)nearest);
  const I32 too_far = magnitude(back) > magnitude(x);
  const U16 step = convert<U16>((U32)too_far & 1u);
  return (F16)(U16)(nearest - step);
}

inline F32 from_bf16(U16 x) {
  return (F32)(convert<U32>(x) << 16);
}
inline U16 to_bf16(F32 x) {
  const U32 bits = (U32)x;
  const U32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return convert<U16>(x != x ? (bits >> 16) | 0x40u : rounded);
}

// Which of ten classes (bit 0 signalling NaN ... bit 9 positive infinity) a value is in, tested against a set of bits.
template <class F, class U, int Exponent, int Mantissa>
inline Mask in_class(U x, U32 set) {
  constexpr u64 exponent_mask = (1ull << Exponent) - 1, mantissa_mask = (1ull << Mantissa) - 1;
  Mask result = 0;
  for (int i = 0; i < kLanes; i++) {
    const u64 bits = x[i], fraction = bits & mantissa_mask, exponent = bits >> Mantissa & exponent_mask;
    const bool negative = bits >> (Exponent + Mantissa) & 1;
    int kind = negative ? 3 : 8;
    if (exponent == exponent_mask) kind = fraction ? (fraction >> (Mantissa - 1) ? 1 : 0) : negative ? 2 : 9;
    if (exponent == 0) kind = fraction ? (negative ? 4 : 7) : (negative ? 5 : 6);
    result |= Mask{(set[i] >> kind) & 1u} << i;
  }
  return result;
}
inline Mask in_class(F32 x, U32 set) {
  return in_class<F32, U32, 8, 23>((U32)x, set);
}
inline Mask in_class(F64 x, U32 set) {
  return in_class<F64, U64, 11, 52>((U64)x, set);
}
inline Mask in_class(F16 x, U32 set) {
  return in_class<F16, U16, 5, 10>((U16)x, set);
}

}  // namespace greenlane

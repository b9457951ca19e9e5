// Integer operations: bit fields, counting, saturation, dot products, byte permutation.

#pragma once

#include "lanes.h"

namespace greenlane {

template <class V>
inline V imax(V a, V b) {
  return a > b ? a : b;
}
template <class V>
inline V imin(V a, V b) {
  return a < b ? a : b;
}
template <class V>
inline V imedian(V a, V b, V c) {
  return imax(imin(a, b), imin(imax(a, b), c));
}

inline U32 count_ones(U32 x) {
  return __builtin_elementwise_popcount(x);
}
inline U32 reverse_bits(U32 x) {
  return __builtin_elementwise_bitreverse(x);
}
// Leading and trailing zeros; -1 when no bit is set.
inline U32 leading_zeros(U32 x) {
  return lanewise<U32>([](u32 v) -> u32 { return v ? __builtin_clz(v) : ~0u; }, x);
}
inline U32 trailing_zeros(U32 x) {
  return lanewise<U32>([](u32 v) -> u32 { return v ? __builtin_ctz(v) : ~0u; }, x);
}
// How many bits at the top equal the sign; -1 when all do.
inline U32 leading_sign_bits(I32 x) {
  return lanewise<U32>([](i32 v) -> u32 { return v == 0 || v == -1 ? ~0u : __builtin_clz(v < 0 ? ~v : v); }, x);
}

inline U32 field(U32 x, U32 offset, U32 width) {
  return (x >> (offset & 31u)) & ((splat(1) << (width & 31u)) - 1u);
}
inline I32 signed_field(U32 x, U32 offset, U32 width) {
  const U32 bits = width & 31u, value = (U32)((I32)x >> (I32)(offset & 31u));
  const U32 unused = (32u - bits) & 31u;
  const I32 extended = (I32)(value << unused) >> (I32)unused;
  return bits == 0u ? (I32)(0) : extended;
}

inline U32 multiply_high(U32 a, U32 b) {
  return high(convert<U64>(a) * convert<U64>(b));
}
inline I32 multiply_high(I32 a, I32 b) {
  return (I32)high((U64)(convert<I64>(a) * convert<I64>(b)));
}
inline U32 u24(U32 x) {
  return x & 0xffffffu;
}
inline I32 i24(I32 x) {
  return (x << 8) >> 8;
}

inline U32 add_saturating(U32 a, U32 b) {
  return __builtin_elementwise_add_sat(a, b);
}
inline I32 add_saturating(I32 a, I32 b) {
  return __builtin_elementwise_add_sat(a, b);
}
inline U16 add_saturating(U16 a, U16 b) {
  return __builtin_elementwise_add_sat(a, b);
}
inline I16 add_saturating(I16 a, I16 b) {
  return __builtin_elementwise_add_sat(a, b);
}
inline U32 sub_saturating(U32 a, U32 b) {
  return __builtin_elementwise_sub_sat(a, b);
}
inline I32 sub_saturating(I32 a, I32 b) {
  return __builtin_elementwise_sub_sat(a, b);
}
inline U16 sub_saturating(U16 a, U16 b) {
  return __builtin_elementwise_sub_sat(a, b);
}
inline I16 sub_saturating(I16 a, I16 b) {
  return __builtin_elementwise_sub_sat(a, b);
}

// The lanes below this one among the low (or high) 32 lanes.
inline U32 mask_count_low(U32 mask, U32 add) {
  const U32 lane = lane_numbers();
  const U32 below = lane >= 32u ? splat(~0u) : (splat(1) << (lane & 31u)) - 1u;
  return count_ones(mask & below) + add;
}
inline U32 mask_count_high(U32 mask, U32 add) {
  const U32 lane = lane_numbers();
  const U32 below = lane < 32u ? splat(0) : (splat(1) << (lane & 31u)) - 1u;
  return count_ones(mask & below) + add;
}

// Picks four bytes of {a, b}; selectors above 7 give sign copies, zero or 0xff.
inline U32 permute_bytes(U32 a, U32 b, U32 selector) {
  return lanewise<U32>(
      [](u32 hi, u32 lo, u32 sel) -> u32 {
        const u64 all = (u64)hi << 32 | lo;
        u32 result = 0;
        for (int k = 0; k < 4; k++) {
          const u32 s = sel >> (8 * k) & 0xff;
          u32 byte = 0;
          if (s < 8)
            byte = all >> (8 * s) & 0xff;
          else if (s < 12)
            byte = all >> (16 * (s - 8) + 15) & 1 ? 0xff : 0;
          else if (s > 12)
            byte = 0xff;
          result |= byte << (8 * k);
        }
        return result;
      },
      a, b, selector);
}

template <int Bits, bool SignedA, bool SignedB>
inline U32 dot(U32 a, U32 b, U32 c) {
  constexpr int count = 32 / Bits;
  U32 sum = c;
  for (int k = 0; k < count; k++) {
    const U32 top_a = a << (32 - Bits - Bits * k), top_b = b << (32 - Bits - Bits * k);
    const I32 x = SignedA ? (I32)top_a >> (32 - Bits) : (I32)(top_a >> (32 - Bits));
    const I32 y = SignedB ? (I32)top_b >> (32 - Bits) : (I32)(top_b >> (32 - Bits));
    sum += (U32)(x * y);
  }
  return sum;
}
// The same, kept within the range of a 32-bit integer.
template <int Bits, bool SignedA, bool SignedB>
inline U32 dot_saturating(U32 a, U32 b, U32 c) {
  constexpr bool is_signed = SignedA || SignedB;
  return lanewise<U32>(
      [](u32 x, u32 y, u32 z) -> u32 {
        i64 sum = is_signed ? (i64)(i32)z : (i64)z;
        for (int k = 0; k < 32 / Bits; k++) {
          const u32 p = x << (32 - Bits - Bits * k), q = y << (32 - Bits - Bits * k);
          sum += (SignedA ? (i64)((i32)p >> (32 - Bits)) : (i64)(p >> (32 - Bits))) *
                 (SignedB ? (i64)((i32)q >> (32 - Bits)) : (i64)(q >> (32 - Bits)));
        }
        const i64 least = is_signed ? -0x80000000ll : 0, most = is_signed ? 0x7fffffffll : 0xffffffffll;
        return (u32)(sum < least ? least : sum > most ? most : sum);
      },
      a, b, c);
}
inline I32 dot2_i16(U32 a, U32 b, I32 c) {
  return c + extend(a, 16) * extend(b, 16) + ((I32)a >> 16) * ((I32)b >> 16);
}
inline U32 dot2_u16(U32 a, U32 b, U32 c) {
  return c + (a & 0xffffu) * (b & 0xffffu) + (a >> 16) * (b >> 16);
}

inline U32 absolute_difference(U32 a, U32 b) {
  return a > b ? a - b : b - a;
}
inline U32 sum_of_byte_differences(U32 a, U32 b) {
  U32 sum = splat(0);
  for (int k = 0; k < 32; k += 8) sum += absolute_difference((a >> k) & 0xffu, (b >> k) & 0xffu);
  return sum;
}

}  // namespace greenlane

// No instruction set in particular.
#pragma once

#include "fast/lanes.h"
#include "vt/half.h"

namespace cpu::fast::isa {

template <int Bits>
LANES_INLINE I32x16 dot4(I32x16 sum, U8x64 w, std::int32_t x) {
  std::int8_t four[4];
  std::memcpy(four, &x, 4);
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) sum[lane] += w[4 * lane + i] * four[i];
  }
  return sum;
}

LANES_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return a * b + c;
}
LANES_INLINE F32x16 from_int(I32x16 value) {
  return __builtin_convertvector(value, F32x16);
}

LANES_INLINE F32x16 from_half(U16x16 value) {
  F32x16 result;
  for (int lane = 0; lane < kLanes; ++lane) result[lane] = vt::f16_to_float(value[lane]);
  return result;
}

LANES_INLINE U16x16 to_half(F32x16 value) {
  U16x16 result;
  for (int lane = 0; lane < kLanes; ++lane) result[lane] = vt::float_to_f16(value[lane]);
  return result;
}

LANES_INLINE F32x16 largest(F32x16 a, F32x16 b) {
  return a > b ? a : b;
}

}  // namespace cpu::fast::isa

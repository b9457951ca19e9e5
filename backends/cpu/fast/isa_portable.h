// No instruction set in particular.
#pragma once

#include "fast/lanes.h"
#include "vt/half.h"

namespace cpu::fast::isa {

constexpr int kTokens = 1;  // that meet a block of weights while it is in registers

template <int Bits>
LANES_INLINE I32x16 dot4(I32x16 sum, U8x64 w, std::int32_t x) {
  // The bytes of a lane are a little-endian number's, as everywhere in this backend.
  const auto lanes = reinterpret_cast<I32x16>(w);
  for (int i = 0; i < 4; ++i) sum += (lanes >> (8 * i) & 255) * static_cast<std::int8_t>(x >> (8 * i));
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

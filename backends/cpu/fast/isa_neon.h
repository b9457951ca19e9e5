// aarch64 with the dot product extension: four quarters of four lanes.
#pragma once

#include <arm_neon.h>

#include "fast/lanes.h"

namespace cpu::fast::isa {

constexpr int kTokens = 4;  // that meet a block of weights while it is in registers

// The instruction multiplies signed by signed. Eight-bit weights are unsigned here: 128 less makes them signed, and 128
// times the activations is added back.
template <int Bits>
LANES_INLINE I32x16 dot4(I32x16 sum, U8x64 w, std::int32_t x) {
  int32x4_t sums[4];
  int8x16_t weights[4];
  std::memcpy(sums, &sum, 64);
  std::memcpy(weights, &w, 64);
  const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(x));
  for (int part = 0; part < 4; ++part) {
    if constexpr (Bits == 8) {
      weights[part] = veorq_s8(weights[part], vdupq_n_s8(-128));
      sums[part] = vaddq_s32(sums[part], vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), vdupq_n_s8(1), four), 7));
    }
    sums[part] = vdotq_s32(sums[part], weights[part], four);
  }
  std::memcpy(&sum, sums, 64);
  return sum;
}

LANES_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  float32x4_t x[4], y[4], z[4];
  std::memcpy(x, &a, 64);
  std::memcpy(y, &b, 64);
  std::memcpy(z, &c, 64);
  for (int part = 0; part < 4; ++part) z[part] = vfmaq_f32(z[part], x[part], y[part]);
  std::memcpy(&c, z, 64);
  return c;
}

LANES_INLINE F32x16 from_int(I32x16 value) {
  return __builtin_convertvector(value, F32x16);
}

LANES_INLINE F32x16 from_half(U16x16 value) {
  float16x4_t halves[4];
  float32x4_t wide[4];
  std::memcpy(halves, &value, 32);
  for (int part = 0; part < 4; ++part) wide[part] = vcvt_f32_f16(halves[part]);
  F32x16 result;
  std::memcpy(&result, wide, 64);
  return result;
}

LANES_INLINE U16x16 to_half(F32x16 value) {
  float32x4_t wide[4];
  float16x4_t halves[4];
  std::memcpy(wide, &value, 64);
  for (int part = 0; part < 4; ++part) halves[part] = vcvt_f16_f32(wide[part]);
  U16x16 result;
  std::memcpy(&result, halves, 32);
  return result;
}

LANES_INLINE F32x16 largest(F32x16 a, F32x16 b) {
  return a > b ? a : b;
}

}  // namespace cpu::fast::isa

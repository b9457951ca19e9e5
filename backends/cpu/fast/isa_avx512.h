// AVX-512 with VNNI.
#pragma once

#include <immintrin.h>

#include "fast/lanes.h"

namespace cpu::fast::isa {

constexpr int kTokens = 8;  // that meet a block of weights while it is in registers

// sum[lane] += four bytes of w times the four signed bytes of x
template <int Bits>
LANES_INLINE I32x16 dot4(I32x16 sum, U8x64 w, std::int32_t x) {
  return reinterpret_cast<I32x16>(
      _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(w), _mm512_set1_epi32(x)));
}

LANES_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return _mm512_fmadd_ps(a, b, c);
}

LANES_INLINE F32x16 from_int(I32x16 value) {
  return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(value));
}
LANES_INLINE F32x16 from_half(U16x16 value) {
  return _mm512_cvtph_ps(reinterpret_cast<__m256i>(value));
}
LANES_INLINE U16x16 to_half(F32x16 value) {
  return reinterpret_cast<U16x16>(_mm512_cvtps_ph(value, 0));
}
LANES_INLINE F32x16 largest(F32x16 a, F32x16 b) {
  return _mm512_max_ps(a, b);
}

}  // namespace cpu::fast::isa

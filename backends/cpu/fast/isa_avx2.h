// AVX2 with FMA and F16C: two halves of eight lanes.
#pragma once

#include <immintrin.h>

#include "fast/lanes.h"

namespace cpu::fast::isa {

constexpr int kTokens = 4;  // that meet a block of weights while it is in registers

typedef float F32x8 __attribute__((vector_size(32)));

struct Halves {
  __m256i low;
  __m256i high;
};

template <typename Vector>
LANES_INLINE Halves halves(const Vector& value) {
  Halves result;
  std::memcpy(&result, &value, 64);
  return result;
}

template <typename Vector>
LANES_INLINE Vector whole(__m256i low, __m256i high) {
  const Halves parts{low, high};
  Vector result;
  std::memcpy(&result, &parts, 64);
  return result;
}

// Products of adjacent bytes are added in 16 bits, which can't overflow below seven bits of weight; eight bits take the
// long way round.
template <int Bits>
LANES_INLINE __m256i dot4_half(__m256i sum, __m256i w, __m256i x) {
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (Bits < 8) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones));
  } else {
    const __m256i low = _mm256_and_si256(w, _mm256_set1_epi8(15));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(w, 4), _mm256_set1_epi8(15));
    const __m256i lows = _mm256_madd_epi16(_mm256_maddubs_epi16(low, x), ones);
    const __m256i highs = _mm256_madd_epi16(_mm256_maddubs_epi16(high, x), _mm256_set1_epi16(16));
    return _mm256_add_epi32(sum, _mm256_add_epi32(lows, highs));
  }
}

template <int Bits>
LANES_INLINE I32x16 dot4(I32x16 sum, U8x64 w, std::int32_t x) {
  const Halves s = halves(sum);
  const Halves v = halves(w);
  const __m256i four = _mm256_set1_epi32(x);
  return whole<I32x16>(dot4_half<Bits>(s.low, v.low, four), dot4_half<Bits>(s.high, v.high, four));
}

LANES_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  const Halves x = halves(a), y = halves(b), z = halves(c);
  const auto one = [](__m256i p, __m256i q, __m256i r) {
    return _mm256_castps_si256(_mm256_fmadd_ps(_mm256_castsi256_ps(p), _mm256_castsi256_ps(q), _mm256_castsi256_ps(r)));
  };
  return whole<F32x16>(one(x.low, y.low, z.low), one(x.high, y.high, z.high));
}

LANES_INLINE F32x16 from_int(I32x16 value) {
  return __builtin_convertvector(value, F32x16);
}

LANES_INLINE F32x16 from_half(U16x16 value) {
  __m128i parts[2];
  std::memcpy(parts, &value, 32);
  return whole<F32x16>(_mm256_castps_si256(_mm256_cvtph_ps(parts[0])), _mm256_castps_si256(_mm256_cvtph_ps(parts[1])));
}

LANES_INLINE U16x16 to_half(F32x16 value) {
  const Halves parts = halves(value);
  const __m128i halves16[2] = {_mm256_cvtps_ph(_mm256_castsi256_ps(parts.low), 0),
                               _mm256_cvtps_ph(_mm256_castsi256_ps(parts.high), 0)};
  U16x16 result;
  std::memcpy(&result, halves16, 32);
  return result;
}

LANES_INLINE F32x16 largest(F32x16 a, F32x16 b) {
  return a > b ? a : b;
}

}  // namespace cpu::fast::isa

// See ceilings.h. Compiled for the machine that it runs on.
#include "ceilings.h"

#include <cstring>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

namespace {

typedef float F32x16 __attribute__((vector_size(64)));
typedef std::uint64_t U64x8 __attribute__((vector_size(64)));

constexpr int kChains = 12;

}  // namespace

std::uint64_t read_all(const void* memory, std::size_t bytes) {
  const auto* from = static_cast<const char*>(memory);
  U64x8 sum[4] = {};
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
    for (int chain = 0; chain < 4; ++chain) {
      U64x8 value;
      std::memcpy(&value, from + i + 64 * static_cast<std::size_t>(chain), 64);
      sum[chain] ^= value;
    }
  }
  const U64x8 all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  return all[0] ^ all[3] ^ all[7];
}

double float_operations(std::int64_t rounds, float* sink) {
  F32x16 sum[kChains] = {};
  F32x16 a = F32x16{} + 1.0001f;
  F32x16 b = F32x16{} + 0.9999f;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (auto& chain : sum) chain = chain * a + b;
    asm volatile("" : "+v"(a), "+v"(b));
  }
  for (const auto& chain : sum) *sink += chain[0];
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

double byte_operations(std::int64_t rounds, std::int32_t* sink) {
#if defined(__AVX512VNNI__)
  __m512i sum[kChains] = {};
  __m512i a = _mm512_set1_epi8(3);
  __m512i b = _mm512_set1_epi8(-2);
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (auto& chain : sum) chain = _mm512_dpbusd_epi32(chain, a, b);
    asm volatile("" : "+v"(a), "+v"(b));
  }
  for (const auto& chain : sum) *sink += _mm512_reduce_add_epi32(chain);
  return 2.0 * 64 * kChains * static_cast<double>(rounds);
#else
  static_cast<void>(rounds);
  static_cast<void>(sink);
  return 0.0;
#endif
}

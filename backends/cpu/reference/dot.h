// The one order in which reference kernels add products up: sixteen running sums, then a tree. Wider vector registers
// give the same bits, because products are not fused with sums.
#pragma once

#include <cstdint>

// Compiled once per register width; the loader picks.
#if defined(__x86_64__) && defined(__linux__)
#define REFERENCE_WIDTHS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define REFERENCE_WIDTHS
#endif

namespace cpu::reference {

// out[t] = the product of `a` with each of `Count` vectors.
template <int Count>
[[gnu::always_inline]] inline void dots(const float* a, const float* const (&b)[Count], std::int64_t count,
                                        float (&out)[Count]) {
  constexpr int kLanes = 16;
  float sum[Count][kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int t = 0; t < Count; ++t) {
      for (int lane = 0; lane < kLanes; ++lane) sum[t][lane] += a[i + lane] * b[t][i + lane];
    }
  }
  for (int t = 0; t < Count; ++t) {
    for (int lane = 0; i + lane < count; ++lane) sum[t][lane] += a[i + lane] * b[t][i + lane];
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane) sum[t][lane] += sum[t][lane + width];
    }
    out[t] = sum[t][0];
  }
}

[[gnu::always_inline]] inline float dot(const float* a, const float* b, std::int64_t count) {
  const float* const vectors[1] = {b};
  float out[1];
  dots<1>(a, vectors, count, out);
  return out[0];
}

}  // namespace cpu::reference

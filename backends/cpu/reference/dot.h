// The one order in which reference kernels add products up: sixteen running sums, then a tree.
#pragma once

#include <cstdint>

namespace cpu::reference {

inline float dot(const float* a, const float* b, std::int64_t count) {
  constexpr int kLanes = 16;
  float sum[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  }
  for (int lane = 0; i + lane < count; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) sum[lane] += sum[lane + width];
  }
  return sum[0];
}

}  // namespace cpu::reference

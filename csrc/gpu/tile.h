// Reductions over the lanes of a tile (vendor::kLanes threads, whole inside any wavefront) and over a block.
#pragma once

#include "vendor.h"

namespace vt::gpu {

using vendor::kLanes;

__device__ inline float tile_sum(float value) {
  for (int mask = kLanes / 2; mask > 0; mask /= 2) value += vendor::shuffle_xor(value, mask);
  return value;
}

__device__ inline float tile_max(float value) {
  for (int mask = kLanes / 2; mask > 0; mask /= 2) value = fmaxf(value, vendor::shuffle_xor(value, mask));
  return value;
}

// Every thread of the block must call it; all get the sum, added up in the same order every time.
template <int kThreads>
__device__ inline float block_sum(float value) {
  static_assert(kThreads % kLanes == 0);
  __shared__ float partial[kThreads / kLanes];
  value = tile_sum(value);
  __syncthreads();
  if (threadIdx.x % kLanes == 0) partial[threadIdx.x / kLanes] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < kThreads / kLanes; ++i) sum += partial[i];
  return sum;
}

// A logit and its token. The order of candidates everywhere: larger logit first, then lower id.
struct Candidate {
  float logit;
  int id;
};

__device__ inline bool ranks_before(Candidate a, Candidate b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

template <int kThreads>
__device__ inline Candidate block_best(Candidate mine) {
  static_assert(kThreads % kLanes == 0);
  __shared__ Candidate partial[kThreads / kLanes];
  for (int mask = kLanes / 2; mask > 0; mask /= 2) {
    const Candidate other{vendor::shuffle_xor(mine.logit, mask), vendor::shuffle_xor(mine.id, mask)};
    if (ranks_before(other, mine)) mine = other;
  }
  __syncthreads();
  if (threadIdx.x % kLanes == 0) partial[threadIdx.x / kLanes] = mine;
  __syncthreads();
  Candidate best = partial[0];
  for (int i = 1; i < kThreads / kLanes; ++i) {
    if (ranks_before(partial[i], best)) best = partial[i];
  }
  return best;
}

}  // namespace vt::gpu

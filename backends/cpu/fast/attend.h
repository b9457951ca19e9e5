// Queries that share keys and values walk the cache in blocks of sixteen positions. Keys lie transposed, so that one
// lane is one position. What a query adds up doesn't depend on its neighbours: positions that it can't see give 0.
#pragma once

#include "fast/arithmetic.h"
#include "fast/kernels.h"

namespace cpu::fast {
namespace {

template <bool Half>
LANES_INLINE F32x16 load_cached(const char* base, std::int64_t element) {
  if constexpr (Half) {
    return isa::from_half(load_lanes<U16x16>(base + element * 2));
  } else {
    return load_lanes<F32x16>(base + element * 4);
  }
}

template <bool Half, int Queries>
LANES_INLINE void score(const AttentionTile& tile, std::int64_t blocks) {
  for (std::int64_t block = 0; block < blocks; ++block) {
    const char* keys = tile.block(tile.keys, block);
    F32x16 sum[Queries] = {};
    for (std::int64_t d = 0; d < tile.head_dim; ++d) {
      const F32x16 key = load_cached<Half>(keys, d * kLanes);
      unrolled<Queries>([&](auto i) LANES_LAMBDA { sum[i] = isa::fma(key, all(tile.q[i][d]), sum[i]); });
    }
    unrolled<Queries>([&](auto i) LANES_LAMBDA {
      store_lanes(tile.scores + i * tile.score_stride + block * kLanes, sum[i] * tile.scale);
    });
  }
}

// Scores become shares. What lies beyond the query's length becomes 0.
LANES_INLINE void softmax(float* scores, std::int64_t length, std::int64_t padded) {
  for (std::int64_t i = length; i < padded; ++i) scores[i] = -__builtin_inff();
  F32x16 peaks = load_lanes<F32x16>(scores);
  for (std::int64_t i = kLanes; i < padded; i += kLanes) peaks = isa::largest(load_lanes<F32x16>(scores + i), peaks);
  const float peak = largest_of(peaks);
  F32x16 sums{};
  for (std::int64_t i = 0; i < padded; i += kLanes) {
    const F32x16 share = exponential(load_lanes<F32x16>(scores + i) - peak);
    store_lanes(scores + i, share);
    sums += share;
  }
  const float inverse = 1.0f / sum_of(sums);
  for (std::int64_t i = 0; i < padded; i += kLanes) store_lanes(scores + i, load_lanes<F32x16>(scores + i) * inverse);
}

template <bool Half, int Queries, int Vectors>
LANES_INLINE void mix(const AttentionTile& tile, std::int64_t first, std::int64_t longest) {
  F32x16 sum[Queries][Vectors] = {};
  for (std::int64_t block = 0; block * kLanes < longest; ++block) {
    const char* values = tile.block(tile.values, block);
    const float* shares = tile.scores + block * kLanes;
    const std::int64_t count = longest - block * kLanes < kLanes ? longest - block * kLanes : kLanes;
    for (std::int64_t position = 0; position < count; ++position) {
      F32x16 value[Vectors];
      unrolled<Vectors>([&](auto v) LANES_LAMBDA {
        value[v] = load_cached<Half>(values, position * tile.head_dim + first + v * kLanes);
      });
      unrolled<Queries>([&](auto i) LANES_LAMBDA {
        const F32x16 share = all(shares[i * tile.score_stride + position]);
        unrolled<Vectors>([&](auto v) LANES_LAMBDA { sum[i][v] = isa::fma(share, value[v], sum[i][v]); });
      });
    }
  }
  unrolled<Queries>([&](auto i) LANES_LAMBDA {
    unrolled<Vectors>([&](auto v) LANES_LAMBDA { store_lanes(tile.out[i] + first + v * kLanes, sum[i][v]); });
  });
}

template <bool Half, int Queries>
void attend_queries(const AttentionTile& tile) {
  const std::int64_t longest = tile.longest();
  const std::int64_t blocks = (longest + kLanes - 1) / kLanes;
  score<Half, Queries>(tile, blocks);
  for (int i = 0; i < Queries; ++i) softmax(tile.scores + i * tile.score_stride, tile.lengths[i], blocks * kLanes);
  std::int64_t d = 0;
  for (; d + 4 * kLanes <= tile.head_dim; d += 4 * kLanes) mix<Half, Queries, 4>(tile, d, longest);
  for (; d < tile.head_dim; d += kLanes) mix<Half, Queries, 1>(tile, d, longest);
}

template <bool Half>
void attend_some(const AttentionTile& tile) {
  switch (tile.queries) {
    case 1:
      return attend_queries<Half, 1>(tile);
    case 2:
      return attend_queries<Half, 2>(tile);
    case 3:
      return attend_queries<Half, 3>(tile);
    case 4:
      return attend_queries<Half, 4>(tile);
    case 5:
      return attend_queries<Half, 5>(tile);
    default:
      return attend_queries<Half, 6>(tile);
  }
}

void attend(const AttentionTile& tile) {
  if (tile.half) {
    attend_some<true>(tile);
  } else {
    attend_some<false>(tile);
  }
}

}  // namespace
}  // namespace cpu::fast

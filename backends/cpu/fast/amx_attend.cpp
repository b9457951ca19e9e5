// See amx.h. Scores and mixtures on the matrix unit in bfloat16, softmax in float32. A row of a tile is one query: what
// it adds up, and in which order, doesn't depend on the other rows.
#include "fast/isa_avx512.h"
// The instruction set comes first: everything below is written in its terms.
#include <algorithm>

#include "fast/amx.h"
#include "fast/arithmetic.h"
#include "fast/kernels.h"
#include "fast/tiles.h"

namespace cpu::fast {
namespace {

constexpr int kTileRows = 16;                     // queries
constexpr int kDepth = 32;                        // numbers of a tile's row
constexpr int kTileNumbers = kTileRows * kDepth;  // in bfloat16
constexpr int kRun = kLanes;                      // positions of a block
constexpr int kRowTiles = AttentionTile::kMaxQueries / kTileRows;
constexpr int kDimTiles = 4;  // sums of 64 numbers of the head stay in the matrix unit
constexpr int kSpan = 8;      // pairs of blocks whose values are spelled out at once
constexpr int kMaxHeadDim = 256;

using Bits = std::uint16_t;  // a bfloat16

// Tiles 0 to 3: sums; 4: queries or shares; 5 and 6: keys or values.
TileConfig make_config(int queries) {
  TileConfig config;
  const auto rows = static_cast<std::uint8_t>(std::min(queries, kTileRows));
  for (int tile = 0; tile < 5; ++tile) config.set(tile, rows, 64);
  for (int tile = 5; tile < 7; ++tile) config.set(tile, kTileRows, 64);
  return config;
}

// Each number of `even` followed by its neighbour of `odd`, as the matrix unit wants its right side.
LANES_INLINE void store_pairs(F32x16 even, F32x16 odd, Bits* to) {
  alignas(64) static constexpr Bits kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                  8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even));
  _mm512_store_si512(to, _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), both));
}

LANES_INLINE F32x16 load_halves(const char* from) {
  return isa::from_half(load_lanes<U16x16>(from));
}

struct Shape {
  int queries;
  int row_tiles;
  std::int64_t dim;
  std::int64_t longest;
  std::int64_t pairs;  // of blocks
};

struct alignas(64) Workspace {
  Bits queries[kRowTiles * kMaxHeadDim / kDepth][kTileNumbers];
  Bits keys[2][kMaxHeadDim / kDepth][kTileNumbers];
  Bits values[kSpan][kMaxHeadDim / kLanes][kTileNumbers];
  float sums[kRowTiles][kMaxHeadDim / kLanes][kTileRows * kLanes];
  float inverse[AttentionTile::kMaxQueries];
};

void spell_queries(const AttentionTile& tile, const Shape& shape, Workspace& work) {
  for (int i = 0; i < shape.row_tiles * kTileRows; ++i) {
    for (std::int64_t d = 0; d < shape.dim; d += kDepth) {
      Bits* row = work.queries[i / kTileRows * (shape.dim / kDepth) + d / kDepth] + i % kTileRows * kDepth;
      if (i >= shape.queries) {
        std::fill_n(row, kDepth, Bits{0});
        continue;
      }
      const auto bits =
          _mm512_cvtne2ps_pbh(load_lanes<F32x16>(tile.q[i] + d + kLanes), load_lanes<F32x16>(tile.q[i] + d));
      store_lanes(row, bits);
    }
  }
}

LANES_INLINE void spell_keys(const AttentionTile& tile, const Shape& shape, std::int64_t block, Workspace& work) {
  const char* keys = tile.block(tile.keys, block);
  Bits* to = work.keys[block % 2][0];
  for (std::int64_t d = 0; d < shape.dim; d += 2) {
    store_pairs(load_halves(keys + d * kRun * 2), load_halves(keys + (d + 1) * kRun * 2), to + d * kRun);
  }
}

LANES_INLINE void multiply_keys(const AttentionTile& tile, const Shape& shape, std::int64_t block,
                                const Workspace& work) {
  const std::int64_t depth = shape.dim / kDepth;
  for (int r = 0; r < shape.row_tiles; ++r) {
    _tile_zero(0);
    for (std::int64_t k = 0; k < depth; ++k) {
      _tile_loadd(4, work.queries[r * depth + k], 64);
      _tile_loadd(5, work.keys[block % 2][k], 64);
      _tile_dpbf16ps(0, 4, 5);
    }
    float* to = tile.scores + r * kTileRows * tile.score_stride + block * kRun;
    _tile_stored(0, to, tile.score_stride * 4);
  }
  memory_barrier();
}

// Keys are spelled out one block ahead: what was just written is slow to load into a tile.
void score(const AttentionTile& tile, const Shape& shape, Workspace& work) {
  const std::int64_t blocks = (shape.longest + kRun - 1) / kRun;
  spell_keys(tile, shape, 0, work);
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (block + 1 < blocks) spell_keys(tile, shape, block + 1, work);
    memory_barrier();
    multiply_keys(tile, shape, block, work);
  }
}

// Scores become shares in bfloat16, in the same place; all beyond `length` become 0. Returns one over their sum.
float softmax(float* scores, float scale, std::int64_t length, std::int64_t padded) {
  for (std::int64_t i = length; i < padded; ++i) scores[i] = -__builtin_inff();
  F32x16 peaks = load_lanes<F32x16>(scores);
  for (std::int64_t i = kLanes; i < padded; i += kLanes) peaks = isa::largest(load_lanes<F32x16>(scores + i), peaks);
  const F32x16 peak = all(largest_of(peaks) * scale);
  auto* shares = reinterpret_cast<Bits*>(scores);
  F32x16 sums[2] = {};
  for (std::int64_t i = 0; i < padded; i += 2 * kLanes) {
    const F32x16 low = exponential(load_lanes<F32x16>(scores + i) * scale - peak);
    const F32x16 high = exponential(load_lanes<F32x16>(scores + i + kLanes) * scale - peak);
    sums[0] += low;
    sums[1] += high;
    store_lanes(shares + i, _mm512_cvtne2ps_pbh(high, low));
  }
  return 1.0f / sum_of(sums[0] + sums[1]);
}

// Values of a pair of blocks; what lies beyond the longest query's positions may be anything, and counts as 0.
void spell_values(const AttentionTile& tile, const Shape& shape, std::int64_t pair, Bits (*to)[kTileNumbers]) {
  for (std::int64_t p = 0; p < kDepth; p += 2) {
    const std::int64_t position = pair * kDepth + p;
    if (position >= shape.longest) {
      for (std::int64_t d = 0; d < shape.dim; d += kLanes)
        std::fill_n(to[d / kLanes] + p * kLanes, 2 * kLanes, Bits{0});
      continue;
    }
    const char* row = tile.block(tile.values, position / kRun) + position % kRun * shape.dim * 2;
    const bool last = position + 1 >= shape.longest;
    for (std::int64_t d = 0; d < shape.dim; d += kLanes) {
      const F32x16 odd = last ? F32x16{} : load_halves(row + (shape.dim + d) * 2);
      store_pairs(load_halves(row + d * 2), odd, to[d / kLanes] + p * kLanes);
    }
  }
}

// Adds the shares of `count` pairs of blocks to 64 (or fewer) sums of each query.
LANES_INLINE void mix_span(const AttentionTile& tile, std::int64_t first, std::int64_t count, int row_tile,
                           std::int64_t dim_tile, std::int64_t dim_tiles, Workspace& work) {
  float (*sums)[kTileRows * kLanes] = work.sums[row_tile] + dim_tile;
  const auto* shares = reinterpret_cast<const Bits*>(tile.scores + row_tile * kTileRows * tile.score_stride);
  _tile_loadd(0, sums[0], 64);
  _tile_loadd(1, sums[1], 64);
  if (dim_tiles > 2) {
    _tile_loadd(2, sums[2], 64);
    _tile_loadd(3, sums[3], 64);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    _tile_loadd(4, shares + (first + i) * kDepth, tile.score_stride * 4);
    _tile_loadd(5, work.values[i][dim_tile], 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, work.values[i][dim_tile + 1], 64);
    _tile_dpbf16ps(1, 4, 6);
    if (dim_tiles > 2) {
      _tile_loadd(5, work.values[i][dim_tile + 2], 64);
      _tile_dpbf16ps(2, 4, 5);
      _tile_loadd(6, work.values[i][dim_tile + 3], 64);
      _tile_dpbf16ps(3, 4, 6);
    }
  }
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  if (dim_tiles > 2) {
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
  }
  memory_barrier();
}

void mix(const AttentionTile& tile, const Shape& shape, Workspace& work) {
  const std::int64_t dim_tiles = shape.dim / kLanes;
  for (int r = 0; r < shape.row_tiles; ++r) {
    for (std::int64_t t = 0; t < dim_tiles; ++t) std::fill_n(work.sums[r][t], kTileRows * kLanes, 0.0f);
  }
  for (std::int64_t first = 0; first < shape.pairs; first += kSpan) {
    const std::int64_t count = std::min<std::int64_t>(kSpan, shape.pairs - first);
    for (std::int64_t i = 0; i < count; ++i) spell_values(tile, shape, first + i, work.values[i]);
    memory_barrier();
    for (int r = 0; r < shape.row_tiles; ++r) {
      for (std::int64_t t = 0; t < dim_tiles; t += kDimTiles) {
        mix_span(tile, first, count, r, t, std::min<std::int64_t>(kDimTiles, dim_tiles - t), work);
      }
    }
  }
  for (int i = 0; i < shape.queries; ++i) {
    for (std::int64_t d = 0; d < shape.dim; d += kLanes) {
      const float* sums = work.sums[i / kTileRows][d / kLanes] + i % kTileRows * kLanes;
      store_lanes(tile.out[i] + d, load_lanes<F32x16>(sums) * work.inverse[i]);
    }
  }
}

}  // namespace

bool amx_attends(std::int64_t head_dim, bool half) {
  return half && head_dim % kDepth == 0 && head_dim <= kMaxHeadDim && amx_bf16_available();
}

void amx_attend(const AttentionTile& tile) {
  static thread_local Workspace work;
  const std::int64_t longest = tile.longest();
  const Shape shape{.queries = tile.queries,
                    .row_tiles = (tile.queries + kTileRows - 1) / kTileRows,
                    .dim = tile.head_dim,
                    .longest = longest,
                    .pairs = (longest + kDepth - 1) / kDepth};
  const TileConfig config = make_config(shape.queries);
  _tile_loadconfig(&config);
  spell_queries(tile, shape, work);
  score(tile, shape, work);
  for (int i = 0; i < shape.queries; ++i) {
    work.inverse[i] = softmax(tile.scores + i * tile.score_stride, tile.scale, tile.lengths[i], shape.pairs * kDepth);
  }
  memory_barrier();
  mix(tile, shape, work);
  _tile_release();
}

}  // namespace cpu::fast

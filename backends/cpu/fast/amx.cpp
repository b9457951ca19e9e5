// See amx.h. Tiles: eight tokens of 32 inputs each times 32 inputs of sixteen outputs.
#include "fast/isa_avx512.h"
// The instruction set comes first: everything below is written in its terms.
#include "fast/amx.h"
#include "fast/tiles.h"
#include "fast/unpack.h"

namespace cpu::fast {
namespace {

constexpr int kTileRows = 8;  // tokens: their sums over two groups just fill half of the vector registers
constexpr int kRing = 4;      // products on their way from the matrix unit to the vector units
constexpr int kAhead = 2;     // steps that the matrix unit is ahead

// Tiles 0 to 3: sums; 4 and 5: activations; 6 and 7: weights.
constexpr TileConfig make_config(int inputs) {
  TileConfig config;
  for (int tile = 0; tile < 4; ++tile) config.set(tile, kTileRows, 64);
  for (int tile = 4; tile < 6; ++tile) config.set(tile, kTileRows, static_cast<std::uint16_t>(inputs));
  for (int tile = 6; tile < 8; ++tile) config.set(tile, static_cast<std::uint8_t>(inputs / 4), 64);
  return config;
}

constexpr TileConfig kWholeBlock = make_config(kBlock);
constexpr TileConfig kHalfBlock = make_config(kBlock / 2);

// What the matrix unit takes at once, of two groups spelled out: the inputs that share a scale.
template <int Inputs>
struct alignas(64) Step {
  std::uint8_t bytes[2][kGroup * Inputs];
  float scales[2][kLanes];
  float minima[2][kLanes];
};

using Dots = std::int32_t[2][kTileRows][kLanes];

// Twice the same on other tiles, whose numbers must be literals.
template <int Inputs>
LANES_INLINE void even_product(const std::int8_t* quants, std::int64_t stride, const Step<Inputs>& step, Dots& out) {
  _tile_loadd(4, quants, stride);
  _tile_loadd(6, step.bytes[0], 64);
  _tile_loadd(7, step.bytes[1], 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_dpbsud(0, 4, 6);
  _tile_dpbsud(1, 4, 7);
  _tile_stored(0, out[0], 64);
  _tile_stored(1, out[1], 64);
  memory_barrier();
}

template <int Inputs>
LANES_INLINE void odd_product(const std::int8_t* quants, std::int64_t stride, const Step<Inputs>& step, Dots& out) {
  _tile_loadd(5, quants, stride);
  _tile_loadd(6, step.bytes[0], 64);
  _tile_loadd(7, step.bytes[1], 64);
  _tile_zero(2);
  _tile_zero(3);
  _tile_dpbsud(2, 5, 6);
  _tile_dpbsud(3, 5, 7);
  _tile_stored(2, out[0], 64);
  _tile_stored(3, out[1], 64);
  memory_barrier();
}

template <PackedFormat Format, int Inputs>
void spell_out(const std::uint8_t* group, std::int64_t blocks, int which, Step<Inputs>* steps) {
  constexpr int kVectors = 8 / Format.scale_sets;  // per step
  for (std::int64_t b = 0; b < blocks; ++b, group += Format.block_bytes()) {
    U8x64 w[8];
    unpack<Format.bits>(group, w);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) store_lanes(steps[g / kVectors].bytes[which] + 64 * (g % kVectors), w[g]);
    for (int set = 0; set < Format.scale_sets; ++set, ++steps) {
      store_lanes(steps->scales[which], load_scales(group + Format.quant_bytes() + 32 * set));
      if constexpr (Format.has_minimum()) {
        store_lanes(steps->minima[which], load_scales(group + Format.block_bytes() - 32));
      }
    }
  }
}

// Adds the products of step `s` to the sums of eight tokens.
template <PackedFormat Format, int Inputs>
LANES_INLINE void accumulate(const Dots& dots, const Activations& x, std::int64_t first, std::int64_t s,
                             const Step<Inputs>& step, F32x16 (&sum)[2][kTileRows]) {
  const std::int64_t blocks = x.inputs / kBlock;
  F32x16 scale[2], minimum[2];
  for (int i = 0; i < 2; ++i) scale[i] = load_lanes<F32x16>(step.scales[i]);
  if constexpr (Format.has_minimum()) {
    for (int i = 0; i < 2; ++i) minimum[i] = load_lanes<F32x16>(step.minima[i]);
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTileRows; ++t) {
    const std::int64_t at = (first + t) * blocks + s / Format.scale_sets;
    std::int32_t shift = 0;
    if constexpr (Format.scale_sets == 2) {
      shift = -Format.offset * x.sums[2 * at + s % 2];
    } else if constexpr (!Format.has_minimum()) {
      shift = -Format.offset * (x.sums[2 * at] + x.sums[2 * at + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      I32x16 dot = load_lanes<I32x16>(dots[i][t]);
      if constexpr (!Format.has_minimum()) dot += all(shift);
      sum[i][t] = isa::fma(scale[i] * x.scales[at], isa::from_int(dot), sum[i][t]);
      if constexpr (Format.has_minimum()) sum[i][t] = isa::fma(minimum[i], all(x.scaled_sums[at]), sum[i][t]);
    }
  }
}

template <PackedFormat Format, int Inputs>
void multiply_tile(const Step<Inputs>* steps, const Activations& x, std::int64_t first, float* const (&tiles)[2],
                   std::int64_t count) {
  alignas(64) Dots dots[kRing];
  const std::int64_t number = x.inputs / Inputs;
  const std::int8_t* quants = x.quants + first * x.inputs;
  F32x16 sum[2][kTileRows] = {};
  const auto start = [&](std::int64_t s) {
    if (s >= number) return;
    if (s % 2 == 0) {
      even_product(quants + s * Inputs, x.inputs, steps[s], dots[s % kRing]);
    } else {
      odd_product(quants + s * Inputs, x.inputs, steps[s], dots[s % kRing]);
    }
  };
  for (std::int64_t s = 0; s < kAhead; ++s) start(s);
  for (std::int64_t s = 0; s < number; ++s) {
    start(s + kAhead);
    accumulate<Format>(dots[s % kRing], x, first, s, steps[s], sum);
  }
  for (int i = 0; i < 2; ++i) {
    for (std::int64_t t = 0; t < count; ++t) store_lanes(tiles[i] + (first + t) * kLanes, sum[i][t]);
  }
}

template <Layout L>
void multiply(const std::uint8_t* const (&groups)[2], const Activations& x, std::int64_t count,
              float* const (&tiles)[2]) {
  constexpr PackedFormat kFormat = packed_format(L);
  constexpr int kInputs = kBlock / kFormat.scale_sets;
  static thread_local Step<kInputs> steps[kAmxMaxInputs / kInputs];
  for (int i = 0; i < 2; ++i) spell_out<kFormat>(groups[i], x.inputs / kBlock, i, steps);
  memory_barrier();
  _tile_loadconfig(kFormat.scale_sets == 2 ? &kHalfBlock : &kWholeBlock);
  for (std::int64_t t = 0; t < count; t += kTileRows) {
    multiply_tile<kFormat>(steps, x, t, tiles, count - t < kTileRows ? count - t : kTileRows);
  }
  _tile_release();
}

}  // namespace

const std::array<MultiplyPair, static_cast<std::size_t>(Layout::count)> kAmxMultiply{
    nullptr,
    multiply<Layout::q4_sym>,
    multiply<Layout::q4_min>,
    multiply<Layout::q5_sym>,
    multiply<Layout::q5_min>,
    multiply<Layout::q6_sym>,
    multiply<Layout::q8_sym>,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace cpu::fast

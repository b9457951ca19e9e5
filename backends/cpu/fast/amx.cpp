// See amx.h. Tiles: sixteen tokens of 32 inputs each times 32 inputs of sixteen outputs.
#include "fast/isa_avx512.h"
// The instruction set comes first: everything below is written in its terms.
#include "fast/amx.h"
#include "fast/tiles.h"
#include "fast/unpack.h"

namespace cpu::fast {
namespace {

constexpr int kTileRows = 16;  // tokens
constexpr int kRing = 4;       // products on their way from the matrix unit to the vector units
constexpr int kAhead = 2;      // steps that the matrix unit is ahead

// Tiles 0 and 1: sums; 2 and 3: activations; 4 and 5: weights.
constexpr TileConfig make_config(int inputs) {
  TileConfig config;
  for (int tile = 0; tile < 2; ++tile) config.set(tile, kTileRows, 64);
  for (int tile = 2; tile < 4; ++tile) config.set(tile, kTileRows, static_cast<std::uint16_t>(inputs));
  for (int tile = 4; tile < 6; ++tile) config.set(tile, static_cast<std::uint8_t>(inputs / 4), 64);
  return config;
}

constexpr TileConfig kWholeBlock = make_config(kBlock);
constexpr TileConfig kHalfBlock = make_config(kBlock / 2);

// What the matrix unit takes at once, of a group spelled out: the inputs that share a scale.
template <int Inputs>
struct alignas(64) Step {
  std::uint8_t bytes[kGroup * Inputs];
  float scale[kLanes];
  float minimum[kLanes];
};

using Dots = std::int32_t[kTileRows][kLanes];

// Twice the same on other tiles, whose numbers must be literals.
LANES_INLINE void even_product(const std::int8_t* quants, std::int64_t stride, const std::uint8_t* weights, Dots& out) {
  _tile_loadd(2, quants, stride);
  _tile_loadd(4, weights, 64);
  _tile_zero(0);
  _tile_dpbsud(0, 2, 4);
  _tile_stored(0, out, 64);
  memory_barrier();
}

LANES_INLINE void odd_product(const std::int8_t* quants, std::int64_t stride, const std::uint8_t* weights, Dots& out) {
  _tile_loadd(3, quants, stride);
  _tile_loadd(5, weights, 64);
  _tile_zero(1);
  _tile_dpbsud(1, 3, 5);
  _tile_stored(1, out, 64);
  memory_barrier();
}

template <PackedFormat Format, int Inputs>
void spell_out(const std::uint8_t* group, std::int64_t blocks, Step<Inputs>* steps) {
  constexpr int kVectors = 8 / Format.scale_sets;  // per step
  for (std::int64_t b = 0; b < blocks; ++b, group += Format.block_bytes()) {
    U8x64 w[8];
    unpack<Format.bits>(group, w);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) store_lanes(steps[g / kVectors].bytes + 64 * (g % kVectors), w[g]);
    for (int set = 0; set < Format.scale_sets; ++set, ++steps) {
      store_lanes(steps->scale, load_scales(group + Format.quant_bytes() + 32 * set));
      if constexpr (Format.has_minimum()) store_lanes(steps->minimum, load_scales(group + Format.block_bytes() - 32));
    }
  }
}

// Adds the products of one step to the sums of the first `Rows` of sixteen tokens.
template <PackedFormat Format, int Rows, int Inputs>
LANES_INLINE void accumulate(const Dots& dots, const Panel& panel, std::int64_t s, const Step<Inputs>& step,
                             F32x16 (&sum)[Rows]) {
  const std::int64_t block = s / Format.scale_sets;
  const float* scales = panel.scales + block * kPanel;
  const F32x16 scale = load_lanes<F32x16>(step.scale);
  F32x16 minimum{};
  if constexpr (Format.has_minimum()) minimum = load_lanes<F32x16>(step.minimum);
  unrolled<Rows>([&](auto t) LANES_LAMBDA {
    I32x16 dot = load_lanes<I32x16>(dots[t]);
    if constexpr (!Format.has_minimum()) {
      const std::int32_t* sums = panel.sums + block * 2 * kPanel + t;
      const std::int32_t total = Format.scale_sets == 2 ? sums[s % 2 * kPanel] : sums[0] + sums[kPanel];
      dot += all(-Format.offset * total);
    }
    sum[t] = isa::fma(scale * scales[t], isa::from_int(dot), sum[t]);
    if constexpr (Format.has_minimum()) {
      sum[t] = isa::fma(minimum, all(panel.scaled_sums[block * kPanel + t]), sum[t]);
    }
  });
}

template <PackedFormat Format, int Rows, int Inputs>
void multiply_tile(const Step<Inputs>* steps, const Activations& x, std::int64_t first, float* tile,
                   std::int64_t count) {
  alignas(64) Dots dots[kRing];
  const std::int64_t number = x.inputs / Inputs;
  const std::int8_t* quants = x.quants + first * x.inputs;
  const Panel panel = x.panel(first);
  F32x16 sum[Rows] = {};
  const auto start = [&](std::int64_t s) {
    if (s >= number) return;
    if (s % 2 == 0) {
      even_product(quants + s * Inputs, x.inputs, steps[s].bytes, dots[s % kRing]);
    } else {
      odd_product(quants + s * Inputs, x.inputs, steps[s].bytes, dots[s % kRing]);
    }
  };
  for (std::int64_t s = 0; s < kAhead; ++s) start(s);
  for (std::int64_t s = 0; s < number; ++s) {
    start(s + kAhead);
    accumulate<Format, Rows>(dots[s % kRing], panel, s, steps[s], sum);
  }
  unrolled<Rows>([&](auto t) LANES_LAMBDA {
    if (t < count) store_lanes(tile + t * kLanes, sum[t]);
  });
}

template <Layout L>
void multiply(const std::uint8_t* group, const Activations& x, std::int64_t count, float* tile) {
  constexpr PackedFormat kFormat = packed_format(L);
  constexpr int kInputs = kBlock / kFormat.scale_sets;
  static thread_local Step<kInputs> steps[kAmxMaxInputs / kInputs];
  spell_out<kFormat>(group, x.inputs / kBlock, steps);
  memory_barrier();
  _tile_loadconfig(kFormat.scale_sets == 2 ? &kHalfBlock : &kWholeBlock);
  std::int64_t t = 0;
  for (; t + kTileRows / 2 < count; t += kTileRows) {
    const std::int64_t rows = count - t < kTileRows ? count - t : kTileRows;
    multiply_tile<kFormat, kTileRows>(steps, x, t, tile + t * kLanes, rows);
  }
  if (t < count) multiply_tile<kFormat, kTileRows / 2>(steps, x, t, tile + t * kLanes, count - t);
  _tile_release();
}

}  // namespace

const std::array<Multiply, static_cast<std::size_t>(Layout::count)> kAmxMultiply{
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

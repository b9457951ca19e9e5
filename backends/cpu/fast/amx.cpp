// See amx.h. Tiles: sixteen tokens of 32 inputs each times 32 inputs of sixteen outputs.
#include "fast/isa_avx512.h"
// The instruction set comes first: everything below is written in its terms.
#include "fast/amx.h"
#include "fast/unpack.h"

namespace cpu::fast {
namespace {

constexpr int kTileRows = 16;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// Tiles 0 and 1: sums; 2 and 3: activations; 4 and 5: weights.
constexpr TileConfig make_config(int input_bytes) {
  TileConfig config;
  for (int tile = 0; tile < 6; ++tile) {
    config.row_bytes[tile] = tile == 2 || tile == 3 ? static_cast<std::uint16_t>(input_bytes) : 64;
    config.rows[tile] = tile >= 4 ? static_cast<std::uint8_t>(input_bytes / 4) : kTileRows;
  }
  return config;
}

constexpr TileConfig kWholeBlock = make_config(kBlock);
constexpr TileConfig kHalfBlock = make_config(kBlock / 2);

// Some compilers don't know that tile instructions read and write memory.
LANES_INLINE void memory_barrier() {
  asm volatile("" ::: "memory");
}

// Twice the same on other tiles, whose numbers must be literals.
LANES_INLINE void even_product(const std::int8_t* quants, std::int64_t stride, const std::uint8_t* weights,
                               std::int32_t* out) {
  _tile_zero(0);
  _tile_loadd(2, quants, stride);
  _tile_loadd(4, weights, 64);
  _tile_dpbsud(0, 2, 4);
  _tile_stored(0, out, 64);
  memory_barrier();
}

LANES_INLINE void odd_product(const std::int8_t* quants, std::int64_t stride, const std::uint8_t* weights,
                              std::int32_t* out) {
  _tile_zero(1);
  _tile_loadd(3, quants, stride);
  _tile_loadd(5, weights, 64);
  _tile_dpbsud(1, 3, 5);
  _tile_stored(1, out, 64);
  memory_barrier();
}

// A group spelled out: bytes, and scales as float32.
struct Unpacked {
  alignas(64) std::uint8_t bytes[kAmxMaxInputs / kBlock][8 * 64];
  alignas(64) float scales[kAmxMaxInputs / kBlock][kLanes];
  alignas(64) float last[kAmxMaxInputs / kBlock][kLanes];  // minima, or scales of the second half
};

template <PackedFormat Format>
void spell_out(const std::uint8_t* group, std::int64_t blocks, Unpacked& out) {
  for (std::int64_t b = 0; b < blocks; ++b, group += Format.block_bytes()) {
    U8x64 w[8];
    unpack<Format.bits>(group, w);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) store_lanes(out.bytes[b] + 64 * g, w[g]);
    store_lanes(out.scales[b], load_scales(group + Format.quant_bytes()));
    store_lanes(out.last[b], load_scales(group + Format.block_bytes() - 32));
  }
  memory_barrier();
}

// Adds one block's products to the sums of sixteen tokens.
template <PackedFormat Format>
LANES_INLINE void accumulate(const std::int32_t* dots, const Activations& x, std::int64_t first, std::int64_t block,
                             F32x16 scale, F32x16 minimum, F32x16 (&sum)[kTileRows]) {
  const std::int64_t blocks = x.inputs / kBlock;
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    const std::int64_t at = (first + t) * blocks + block;
    I32x16 dot = load_lanes<I32x16>(dots + t * kLanes);
    if constexpr (!Format.has_minimum()) dot += all(-Format.offset * (x.sums[2 * at] + x.sums[2 * at + 1]));
    sum[t] = isa::fma(scale * x.scales[at], isa::from_int(dot), sum[t]);
    if constexpr (Format.has_minimum()) sum[t] = isa::fma(minimum, all(x.scaled_sums[at]), sum[t]);
  }
}

template <PackedFormat Format>
LANES_INLINE void accumulate_half(const std::int32_t* dots, const Activations& x, std::int64_t first,
                                  std::int64_t block, int half, F32x16 scale, F32x16 (&sum)[kTileRows]) {
  const std::int64_t blocks = x.inputs / kBlock;
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    const std::int64_t at = (first + t) * blocks + block;
    const I32x16 dot = load_lanes<I32x16>(dots + t * kLanes) + all(-Format.offset * x.sums[2 * at + half]);
    sum[t] = isa::fma(scale * x.scales[at], isa::from_int(dot), sum[t]);
  }
}

template <PackedFormat Format>
void multiply_tile(const Unpacked& w, const Activations& x, std::int64_t first, float* tile, std::int64_t count) {
  alignas(64) std::int32_t dots[2][kTileRows * kLanes];
  const std::int64_t blocks = x.inputs / kBlock;
  const std::int8_t* quants = x.quants + first * x.inputs;
  F32x16 sum[kTileRows] = {};
  if constexpr (Format.scale_sets == 2) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      even_product(quants + b * kBlock, x.inputs, w.bytes[b], dots[0]);
      odd_product(quants + b * kBlock + 16, x.inputs, w.bytes[b] + 256, dots[1]);
      accumulate_half<Format>(dots[0], x, first, b, 0, load_lanes<F32x16>(w.scales[b]), sum);
      accumulate_half<Format>(dots[1], x, first, b, 1, load_lanes<F32x16>(w.last[b]), sum);
    }
  } else {
    const auto add = [&](std::int64_t b, const std::int32_t* from) {
      accumulate<Format>(from, x, first, b, load_lanes<F32x16>(w.scales[b]), load_lanes<F32x16>(w.last[b]), sum);
    };
    // The matrix unit works on the next block while the vector units add up the last one.
    even_product(quants, x.inputs, w.bytes[0], dots[0]);
    std::int64_t b = 0;
    for (; b + 2 < blocks; b += 2) {
      odd_product(quants + (b + 1) * kBlock, x.inputs, w.bytes[b + 1], dots[1]);
      add(b, dots[0]);
      even_product(quants + (b + 2) * kBlock, x.inputs, w.bytes[b + 2], dots[0]);
      add(b + 1, dots[1]);
    }
    if (b + 1 < blocks) odd_product(quants + (b + 1) * kBlock, x.inputs, w.bytes[b + 1], dots[1]);
    add(b, dots[0]);
    if (b + 1 < blocks) add(b + 1, dots[1]);
  }
  for (std::int64_t t = 0; t < count; ++t) store_lanes(tile + t * kLanes, sum[t]);
}

template <Layout L>
void multiply(const std::uint8_t* group, const Activations& x, std::int64_t first, std::int64_t count, float* tile) {
  constexpr PackedFormat kFormat = packed_format(L);
  static thread_local Unpacked unpacked;
  spell_out<kFormat>(group, x.inputs / kBlock, unpacked);
  _tile_loadconfig(kFormat.scale_sets == 2 ? &kHalfBlock : &kWholeBlock);
  for (std::int64_t t = 0; t < count; t += kTileRows) {
    const std::int64_t rows = count - t < kTileRows ? count - t : kTileRows;
    multiply_tile<kFormat>(unpacked, x, first + t, tile + t * kLanes, rows);
  }
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

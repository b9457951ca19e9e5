// Sixteen outputs by a few tokens. However many tokens there are, each adds up the same products in the same order: the
// integers of a block are exact, then one fused multiply-add per block (and one for its minimum).
#pragma once

#include <algorithm>

#include "fast/kernels.h"
#include "fast/unpack.h"

namespace cpu::fast {
namespace {

LANES_INLINE std::int32_t four_bytes(const std::int8_t* from) {
  std::int32_t value;
  std::memcpy(&value, from, 4);
  return value;
}

// What `Vectors` vectors of a block give with one token's bytes, after `start`.
template <int Bits, int Vectors>
LANES_INLINE I32x16 dot_product(std::int32_t start, const U8x64* w, const std::int8_t* quants) {
  I32x16 sum = all(start);
  unrolled<Vectors>([&](auto g) LANES_LAMBDA { sum = isa::dot4<Bits>(sum, w[g], four_bytes(quants + 4 * g)); });
  return sum;
}

template <Layout L, int Tokens>
LANES_INLINE void multiply_tokens(const std::uint8_t* group, const Activations& x, std::int64_t first, float* tile) {
  constexpr PackedFormat format = packed_format(L);
  const std::int64_t blocks = x.inputs / kBlock;
  const std::int8_t* quants = x.quants + first * x.inputs;
  Panel panel = x.panel(first);
  F32x16 sum[Tokens] = {};
  for (std::int64_t b = 0; b < blocks; ++b, group += format.block_bytes(), quants += kBlock, panel.next()) {
    U8x64 w[8];
    unpack<format.bits>(group, w);
    const F32x16 scale = load_scales(group + format.quant_bytes());
    const F32x16 last = load_scales(group + format.block_bytes() - 32);  // minima, or scales of the second half
    unrolled<Tokens>([&](auto t) LANES_LAMBDA {
      const std::int8_t* own = quants + t * x.inputs;
      const float x_scale = panel.scales[t];
      const std::int32_t half_sums[2] = {panel.sums[t], panel.sums[kPanel + t]};
      if constexpr (format.scale_sets == 2) {
        const I32x16 low = dot_product<format.bits, 4>(-format.offset * half_sums[0], w, own);
        const I32x16 high = dot_product<format.bits, 4>(-format.offset * half_sums[1], w + 4, own + 16);
        sum[t] = isa::fma(scale * x_scale, isa::from_int(low), sum[t]);
        sum[t] = isa::fma(last * x_scale, isa::from_int(high), sum[t]);
      } else if constexpr (format.has_minimum()) {
        sum[t] = isa::fma(scale * x_scale, isa::from_int(dot_product<format.bits, 8>(0, w, own)), sum[t]);
        sum[t] = isa::fma(last, all(panel.scaled_sums[t]), sum[t]);
      } else {
        const I32x16 dot = dot_product<format.bits, 8>(-format.offset * (half_sums[0] + half_sums[1]), w, own);
        sum[t] = isa::fma(scale * x_scale, isa::from_int(dot), sum[t]);
      }
    });
  }
  unrolled<Tokens>([&](auto t) LANES_LAMBDA { store_lanes(tile + t * kLanes, sum[t]); });
}

template <Layout L>
LANES_INLINE F32x16 load_floats(const std::uint8_t* from) {
  if constexpr (L == Layout::f32) {
    return load_lanes<F32x16>(from);
  } else if constexpr (L == Layout::f16) {
    return isa::from_half(load_lanes<U16x16>(from));
  } else {
    const I32x16 wide = __builtin_convertvector(load_lanes<U16x16>(from), I32x16);
    return reinterpret_cast<F32x16>(wide << 16);
  }
}

// Four running sums per token, so that one multiply-add need not wait for the last.
template <Layout L, int Tokens>
LANES_INLINE void multiply_float_tokens(const std::uint8_t* group, const Activations& x, std::int64_t first,
                                        float* tile) {
  constexpr int kChains = 4;
  constexpr int kBytes = kLanes * float_bytes(L);
  F32x16 sum[Tokens][kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains <= x.inputs; i += kChains) {
    unrolled<kChains>([&](auto chain) LANES_LAMBDA {
      const F32x16 w = load_floats<L>(group + (i + chain) * kBytes);
      unrolled<Tokens>([&](auto t) LANES_LAMBDA {
        sum[t][chain] = isa::fma(w, all(x.values[(first + t) * x.value_stride + i + chain]), sum[t][chain]);
      });
    });
  }
  unrolled<kChains>([&](auto chain) LANES_LAMBDA {
    if (i + chain >= x.inputs) return;
    const F32x16 w = load_floats<L>(group + (i + chain) * kBytes);
    unrolled<Tokens>([&](auto t) LANES_LAMBDA {
      sum[t][chain] = isa::fma(w, all(x.values[(first + t) * x.value_stride + i + chain]), sum[t][chain]);
    });
  });
  unrolled<Tokens>(
      [&](auto t) LANES_LAMBDA { store_lanes(tile + t * kLanes, (sum[t][0] + sum[t][1]) + (sum[t][2] + sum[t][3])); });
}

template <Layout L, int Tokens>
LANES_INLINE void multiply_some(const std::uint8_t* group, const Activations& x, std::int64_t first, float* tile) {
  if constexpr (is_float(L)) {
    multiply_float_tokens<L, Tokens>(group, x, first, tile);
  } else {
    multiply_tokens<L, Tokens>(group, x, first, tile);
  }
}

template <Layout L>
void multiply(const std::uint8_t* group, const Activations& x, std::int64_t count, float* tile) {
  constexpr int kMost = is_float(L) ? std::min(isa::kTokens, 4) : isa::kTokens;
  std::int64_t t = 0;
  for (; t + kMost <= count; t += kMost) multiply_some<L, kMost>(group, x, t, tile + t * kLanes);
  if constexpr (kMost > 4) {
    for (; t + 4 <= count; t += 4) multiply_some<L, 4>(group, x, t, tile + t * kLanes);
  }
  if constexpr (kMost > 1) {
    for (; t < count; ++t) multiply_some<L, 1>(group, x, t, tile + t * kLanes);
  }
}

constexpr std::array<Multiply, static_cast<std::size_t>(Layout::count)> kMultiply{
    nullptr,
    multiply<Layout::q4_sym>,
    multiply<Layout::q4_min>,
    multiply<Layout::q5_sym>,
    multiply<Layout::q5_min>,
    multiply<Layout::q6_sym>,
    multiply<Layout::q8_sym>,
    multiply<Layout::f32>,
    multiply<Layout::f16>,
    multiply<Layout::bf16>,
};

}  // namespace
}  // namespace cpu::fast

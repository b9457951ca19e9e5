// Sixteen outputs by a few tokens. However many tokens there are, each adds up the same products in the same order: the
// integers of a block are exact, then one fused multiply-add per block (and one for its minimum).
#pragma once

#include "fast/kernels.h"
#include "fast/unpack.h"

namespace cpu::fast {
namespace {

constexpr int kTokens = 4;  // that meet a block while it is in registers

LANES_INLINE std::int32_t four_bytes(const std::int8_t* from) {
  std::int32_t value;
  std::memcpy(&value, from, 4);
  return value;
}

template <Layout L, int Tokens>
LANES_INLINE void multiply_tokens(const std::uint8_t* group, const Activations& x, std::int64_t first, float* tile) {
  constexpr PackedFormat format = packed_format(L);
  const std::int64_t blocks = x.inputs / kBlock;
  F32x16 sum[Tokens] = {};
  for (std::int64_t b = 0; b < blocks; ++b, group += format.block_bytes()) {
    U8x64 w[8];
    unpack<format.bits>(group, w);
    const F32x16 scale = load_scales(group + format.quant_bytes());
    const F32x16 last = load_scales(group + format.block_bytes() - 32);  // minima, or scales of the second half
#pragma GCC unroll 4
    for (int t = 0; t < Tokens; ++t) {
      const std::int8_t* quants = x.quants + (first + t) * x.inputs + b * kBlock;
      const float x_scale = x.scales[(first + t) * blocks + b];
      const std::int32_t* sums = x.sums + ((first + t) * blocks + b) * 2;
      if constexpr (format.scale_sets == 2) {
        I32x16 low = all(-format.offset * sums[0]);
        I32x16 high = all(-format.offset * sums[1]);
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) {
          low = isa::dot4<format.bits>(low, w[g], four_bytes(quants + 4 * g));
          high = isa::dot4<format.bits>(high, w[g + 4], four_bytes(quants + 16 + 4 * g));
        }
        sum[t] = isa::fma(scale * x_scale, isa::from_int(low), sum[t]);
        sum[t] = isa::fma(last * x_scale, isa::from_int(high), sum[t]);
      } else {
        I32x16 dot = all(-format.offset * (sums[0] + sums[1]));
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) dot = isa::dot4<format.bits>(dot, w[g], four_bytes(quants + 4 * g));
        sum[t] = isa::fma(scale * x_scale, isa::from_int(dot), sum[t]);
        if constexpr (format.has_minimum()) {
          sum[t] = isa::fma(last, all(x.scaled_sums[(first + t) * blocks + b]), sum[t]);
        }
      }
    }
  }
  for (int t = 0; t < Tokens; ++t) store_lanes(tile + t * kLanes, sum[t]);
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
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; ++chain) {
      const F32x16 w = load_floats<L>(group + (i + chain) * kBytes);
#pragma GCC unroll 4
      for (int t = 0; t < Tokens; ++t) {
        sum[t][chain] = isa::fma(w, all(x.values[(first + t) * x.value_stride + i + chain]), sum[t][chain]);
      }
    }
  }
  for (int chain = 0; i + chain < x.inputs; ++chain) {
    const F32x16 w = load_floats<L>(group + (i + chain) * kBytes);
    for (int t = 0; t < Tokens; ++t) {
      sum[t][chain] = isa::fma(w, all(x.values[(first + t) * x.value_stride + i + chain]), sum[t][chain]);
    }
  }
  for (int t = 0; t < Tokens; ++t) {
    store_lanes(tile + t * kLanes, (sum[t][0] + sum[t][1]) + (sum[t][2] + sum[t][3]));
  }
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
void multiply(const std::uint8_t* group, const Activations& x, std::int64_t first, std::int64_t count, float* tile) {
  std::int64_t t = 0;
  for (; t + kTokens <= count; t += kTokens) multiply_some<L, kTokens>(group, x, first + t, tile + t * kLanes);
  for (; t < count; ++t) multiply_some<L, 1>(group, x, first + t, tile + t * kLanes);
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

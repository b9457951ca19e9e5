// Rounding to eight bits, norms, activation functions, and reductions over logits. Included after an isa_*.h.
#pragma once

#include "fast/arithmetic.h"
#include "fast/kernels.h"

namespace cpu::fast {
namespace {

void quantise(const float* x, std::int64_t inputs, const QuantisedRow& out) {
  for (std::int64_t b = 0; b < inputs / kBlock; ++b) {
    const F32x16 half[2] = {load_lanes<F32x16>(x + b * kBlock), load_lanes<F32x16>(x + b * kBlock + kLanes)};
    const float peak = largest_of(isa::largest(absolute(half[0]), absolute(half[1])));
    const float inverse = peak > 0.0f ? 127.0f / peak : 0.0f;
    const float scale = peak / 127.0f;
    std::int32_t total = 0;
    for (int i = 0; i < 2; ++i) {
      const I32x16 quants = nearest(half[i] * inverse);
      typedef std::int8_t I8x16 __attribute__((vector_size(16)));
      store_lanes(out.quants + b * kBlock + i * kLanes, __builtin_convertvector(quants, I8x16));
      const std::int32_t sum = sum_of(quants);
      out.sums[(2 * b + i) * kPanel] = sum;
      total += sum;
    }
    out.scales[b * kPanel] = scale;
    out.scaled_sums[b * kPanel] = scale * static_cast<float>(total);
  }
}

void store(const float* tile, std::int64_t count, const float* bias, float* out, std::int64_t stride, int lanes) {
  const F32x16 shift = bias ? load_some(bias, lanes) : F32x16{};
  for (std::int64_t t = 0; t < count; ++t) {
    const F32x16 value = load_lanes<F32x16>(tile + t * kLanes) + shift;
    store_some(out + t * stride, value, lanes);
  }
}

void store_gated(const float* gate, const float* up, std::int64_t count, float* out, std::int64_t stride, int lanes) {
  for (std::int64_t t = 0; t < count; ++t) {
    const F32x16 value = silu(load_lanes<F32x16>(gate + t * kLanes)) * load_lanes<F32x16>(up + t * kLanes);
    store_some(out + t * stride, value, lanes);
  }
}

void silu_mul(const float* gate, const float* up, float* out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; i += kLanes) {
    const std::int64_t count = size - i < kLanes ? size - i : kLanes;
    store_some(out + i, silu(load_some(gate + i, count)) * load_some(up + i, count), count);
  }
}

void norm(const float* x, float* residual, const float* weight, float* out, std::int64_t size, float eps) {
  F32x16 squares{};
  for (std::int64_t i = 0; i < size; i += kLanes) {
    const std::int64_t count = size - i < kLanes ? size - i : kLanes;
    F32x16 value = load_some((residual ? residual : x) + i, count);
    if (residual && x) {
      value += load_some(x + i, count);
      store_some(residual + i, value, count);
    }
    squares = isa::fma(value, value, squares);
  }
  const float mean = sum_of(squares) / static_cast<float>(size);
  const float scale = 1.0f / __builtin_sqrtf(mean + eps);
  const float* in = residual ? residual : x;
  for (std::int64_t i = 0; i < size; i += kLanes) {
    const std::int64_t count = size - i < kLanes ? size - i : kLanes;
    store_some(out + i, load_some(in + i, count) * scale * load_some(weight + i, count), count);
  }
}

std::int64_t argmax(const float* values, std::int64_t size) {
  const std::int64_t whole = size / kLanes * kLanes;
  float best = values[0];
  if (whole > 0) {
    F32x16 peak = load_lanes<F32x16>(values);
    for (std::int64_t i = kLanes; i < whole; i += kLanes) peak = isa::largest(load_lanes<F32x16>(values + i), peak);
    best = largest_of(peak);
  }
  for (std::int64_t i = whole; i < size; ++i) best = values[i] > best ? values[i] : best;
  for (std::int64_t i = 0; i < size; ++i) {
    if (values[i] == best) return i;
  }
  return 0;
}

double sum_exp(const float* values, std::int64_t size, float largest) {
  const std::int64_t whole = size / kLanes * kLanes;
  double total = 0.0;
  F32x16 sum{};
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    sum += exponential(load_lanes<F32x16>(values + i) - largest);
    // Short runs, so that small terms don't drown.
    if (i / kLanes % 64 == 63) {
      total += sum_of(sum);
      sum = F32x16{};
    }
  }
  total += sum_of(sum);
  if (whole < size) {
    const F32x16 rest = exponential(load_some(values + whole, size - whole) - largest);
    for (std::int64_t lane = 0; lane < size - whole; ++lane) total += rest[lane];
  }
  return total;
}

void to_half(const float* in, std::uint16_t* out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; i += kLanes) {
    const std::int64_t count = size - i < kLanes ? size - i : kLanes;
    const U16x16 halves = isa::to_half(load_some(in + i, count));
    if (count == kLanes) {
      store_lanes(out + i, halves);
    } else {
      std::memcpy(out + i, &halves, static_cast<std::size_t>(count) * 2);
    }
  }
}

}  // namespace
}  // namespace cpu::fast

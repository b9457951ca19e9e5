// Vector arithmetic that several kernels share. Included after an isa_*.h.
#pragma once

#include "fast/lanes.h"

namespace cpu::fast {
namespace {

// Adding this leaves a float's nearest integer in the low bits of its mantissa.
constexpr float kRounder = 12582912.0f;
constexpr std::int32_t kRounderBits = 0x4B400000;

LANES_INLINE I32x16 nearest(F32x16 value) {
  return reinterpret_cast<I32x16>(value + kRounder) - kRounderBits;
}

LANES_INLINE F32x16 absolute(F32x16 value) {
  return reinterpret_cast<F32x16>(reinterpret_cast<I32x16>(value) & 0x7FFFFFFF);
}

// The vector with its halves, quarters.. of `Width` lanes swapped.
template <int Width, typename Vector>
LANES_INLINE Vector swapped(const Vector& value) {
  constexpr int W = Width;
  return __builtin_shufflevector(value, value, 0 ^ W, 1 ^ W, 2 ^ W, 3 ^ W, 4 ^ W, 5 ^ W, 6 ^ W, 7 ^ W, 8 ^ W, 9 ^ W,
                                 10 ^ W, 11 ^ W, 12 ^ W, 13 ^ W, 14 ^ W, 15 ^ W);
}

// The order of this tree is part of every result.
template <typename Vector>
LANES_INLINE auto sum_of(Vector value) {
  value += swapped<8>(value);
  value += swapped<4>(value);
  value += swapped<2>(value);
  value += swapped<1>(value);
  return value[0];
}

LANES_INLINE float largest_of(F32x16 value) {
  value = isa::largest(value, swapped<8>(value));
  value = isa::largest(value, swapped<4>(value));
  value = isa::largest(value, swapped<2>(value));
  value = isa::largest(value, swapped<1>(value));
  return value[0];
}

// exp by a polynomial on [-ln2/2, ln2/2] and a power of two; relative error below 2e-7. Below -87 it gives 0.
LANES_INLINE F32x16 exponential(F32x16 x) {
  const F32x16 floor = all(-87.0f);
  const F32x16 clamped = isa::largest(x < 88.0f ? x : all(88.0f), floor);
  const I32x16 power = nearest(clamped * 1.44269504f);
  const F32x16 n = isa::from_int(power);
  F32x16 r = isa::fma(n, all(-0.693359375f), clamped);
  r = isa::fma(n, all(2.12194440e-4f), r);
  F32x16 p = all(1.9875691500e-4f);
  p = isa::fma(p, r, all(1.3981999507e-3f));
  p = isa::fma(p, r, all(8.3334519073e-3f));
  p = isa::fma(p, r, all(4.1665795894e-2f));
  p = isa::fma(p, r, all(1.6666665459e-1f));
  p = isa::fma(p, r, all(5.0000001201e-1f));
  p = isa::fma(p, r * r, r + 1.0f);
  const F32x16 result = reinterpret_cast<F32x16>(reinterpret_cast<I32x16>(p) + (power << 23));
  return x < floor ? all(0.0f) : result;
}

LANES_INLINE F32x16 silu(F32x16 x) {
  return x / (exponential(-x) + 1.0f);
}

// The first `count` of sixteen floats, the rest zero.
LANES_INLINE F32x16 load_some(const float* from, std::int64_t count) {
  if (count == kLanes) return load_lanes<F32x16>(from);
  F32x16 value{};
  std::memcpy(&value, from, static_cast<std::size_t>(count) * sizeof(float));
  return value;
}

LANES_INLINE void store_some(float* to, const F32x16& value, std::int64_t count) {
  if (count == kLanes) return store_lanes(to, value);
  std::memcpy(to, &value, static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace
}  // namespace cpu::fast

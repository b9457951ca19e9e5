// The vectors that stand for one register over all lanes of a wave, and the moves between them.

#pragma once

#include <stddef.h>
#include <stdint.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#pragma clang fp contract(off)

#ifndef GREENLANE_LANES
#define GREENLANE_LANES 32
#endif

namespace greenlane {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
using f16 = _Float16;

constexpr int kLanes = GREENLANE_LANES;

template <class T, int N>
using Vector = T __attribute__((ext_vector_type(N)));

using U32 = Vector<u32, kLanes>;
using I32 = Vector<i32, kLanes>;
using F32 = Vector<float, kLanes>;
using U64 = Vector<u64, kLanes>;
using I64 = Vector<i64, kLanes>;
using F64 = Vector<double, kLanes>;
using U16 = Vector<u16, kLanes>;
using I16 = Vector<i16, kLanes>;
using F16 = Vector<f16, kLanes>;
using Bools = bool __attribute__((ext_vector_type(kLanes)));

template <int Lanes>
struct MaskOf;
template <>
struct MaskOf<32> {
  using type = u32;
};
template <>
struct MaskOf<64> {
  using type = u64;
};
using Mask = MaskOf<kLanes>::type;  // one bit per lane
constexpr Mask kAllLanes = ~Mask{0};

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <class To, class From>
inline To convert(From from) {
  return __builtin_convertvector(from, To);
}

template <class V>
struct Element {
  using type = __typeof__(V{}[0] + V{}[0]);
};

inline U32 splat(u32 value) {
  return (U32)(value);
}
inline U64 splat64(u64 value) {
  return (U64)(value);
}

inline U32 lane_numbers() {
  U32 lanes;
  for (int i = 0; i < kLanes; i++) lanes[i] = i;
  return lanes;
}

// A mask as a vector of 0 and -1.
inline I32 lanes_of(Mask mask) {
  return convert<I32>(bits_as<Bools>(mask)) != 0;
}
inline I64 lanes_of64(Mask mask) {
  return convert<I64>(bits_as<Bools>(mask)) != 0;
}
inline I16 lanes_of16(Mask mask) {
  return convert<I16>(bits_as<Bools>(mask)) != 0;
}

template <class V>
inline Mask mask_of(V truth) {
  return bits_as<Mask>(convert<Bools>(truth));
}

inline U32 select(Mask mask, U32 yes, U32 no) {
  return lanes_of(mask) ? yes : no;
}
inline U16 select(Mask mask, U16 yes, U16 no) {
  return lanes_of16(mask) ? yes : no;
}
inline U64 select(Mask mask, U64 yes, U64 no) {
  return lanes_of64(mask) ? yes : no;
}

template <class T>
inline T pick(I32 truth, T yes, T no) {
  return truth ? yes : no;
}
template <class T>
inline T pick(I64 truth, T yes, T no) {
  return truth ? yes : no;
}
template <class T>
inline T pick(I16 truth, T yes, T no) {
  return truth ? yes : no;
}

inline int first_lane(Mask mask) {
  return mask ? __builtin_ctzll(mask) : 0;
}

template <class Function>
inline void for_lanes(Mask mask, Function function) {
  for (u64 left = mask; left; left &= left - 1) function(__builtin_ctzll(left));
}

// Applies a scalar function lane by lane.
template <class R, class Function, class... V>
inline R lanewise(Function function, V... values) {
  R result;
  for (int i = 0; i < kLanes; i++) result[i] = function(values[i]...);
  return result;
}

// 64-bit values live in two consecutive registers, low half first.
inline U64 join(U32 low, U32 high) {
  return convert<U64>(low) | (convert<U64>(high) << 32);
}
inline U32 low(U64 value) {
  return convert<U32>(value);
}
inline U32 high(U64 value) {
  return convert<U32>(value >> 32);
}
inline u64 pair(u32 low, u32 high) {
  return (u64)high << 32 | low;
}

inline U16 low16(U32 value) {
  return convert<U16>(value);
}
inline U16 high16(U32 value) {
  return convert<U16>(value >> 16);
}
inline U32 with_low16(U32 old, U16 half) {
  return (old & 0xffff0000u) | convert<U32>(half);
}
inline U32 with_high16(U32 old, U16 half) {
  return (old & 0xffffu) | (convert<U32>(half) << 16);
}
inline U32 halves(U16 low, U16 high) {
  return convert<U32>(low) | (convert<U32>(high) << 16);
}

// Sign-extended and zero-extended narrow fields.
inline I32 extend(U32 value, int bits) {
  return (I32)(value << (32 - bits)) >> (32 - bits);
}
inline I32 extend16(U16 value) {
  return convert<I32>((I16)value);
}

inline float float_of(u32 bits) {
  return bits_as<float>(bits);
}
inline u32 bits_of(float value) {
  return bits_as<u32>(value);
}
inline double double_of(u64 bits) {
  return bits_as<double>(bits);
}

}  // namespace greenlane

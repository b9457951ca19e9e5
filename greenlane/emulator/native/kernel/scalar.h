// What the scalar unit does beyond C++'s own operators.

#pragma once

#include "float.h"

namespace greenlane {

// Bits 4:0 of `where` (5:0 for 64 bits) are the offset, bits 22:16 the width.
inline u32 scalar_field(u32 x, u32 where) {
  const u32 width = where >> 16 & 127;
  const u32 shifted = x >> (where & 31);
  return width >= 32 ? shifted : shifted & ((1u << width) - 1);
}
inline u64 scalar_field(u64 x, u32 where) {
  const u32 width = where >> 16 & 127;
  const u64 shifted = x >> (where & 63);
  return width >= 64 ? shifted : shifted & ((1ull << width) - 1);
}
inline i32 scalar_signed_field(u32 x, u32 where) {
  const u32 offset = where & 31;
  u32 width = where >> 16 & 127;
  if (width == 0) return 0;
  if (offset + width > 32) width = 32 - offset;
  return (i32)(x << (32 - offset - width)) >> (32 - width);
}
inline i64 scalar_signed_field(u64 x, u32 where) {
  const u32 offset = where & 63;
  u32 width = where >> 16 & 127;
  if (width == 0) return 0;
  if (offset + width > 64) width = 64 - offset;
  return (i64)(x << (64 - offset - width)) >> (64 - width);
}

inline u32 scalar_sign_bits(i32 x) {
  return x == 0 || x == -1 ? ~0u : __builtin_clz(x < 0 ? ~x : x);
}
inline u32 scalar_sign_bits(i64 x) {
  return x == 0 || x == -1 ? ~0u : __builtin_clzll(x < 0 ? ~x : x);
}
inline u32 scalar_absolute(u32 x) {
  return (i32)x < 0 ? 0u - x : x;
}
inline bool overflows_add(u32 a, u32 b) {
  i32 sum;
  return __builtin_add_overflow((i32)a, (i32)b, &sum);
}
inline bool overflows_sub(u32 a, u32 b) {
  i32 difference;
  return __builtin_sub_overflow((i32)a, (i32)b, &difference);
}

template <class T>
inline T whole_quads(T mask) {
  T result = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; i += 4)
    if (mask >> i & 15) result |= T{15} << i;
  return result;
}
template <class T>
inline T quad_mask(T mask) {
  T result = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; i += 4)
    if (mask >> i & 15) result |= T{1} << (i / 4);
  return result;
}
inline u64 bits_doubled(u32 x) {
  u64 result = 0;
  for (int i = 0; i < 32; i++) result |= (u64)(x >> i & 1) * 3 << (2 * i);
  return result;
}
inline u32 pack_toward_zero(float a, float b) {
  return (u32)bits_as<u16>((f16)to_f16_toward_zero((F32)(a))[0]) |
         (u32)bits_as<u16>((f16)to_f16_toward_zero((F32)(b))[0]) << 16;
}

}  // namespace greenlane

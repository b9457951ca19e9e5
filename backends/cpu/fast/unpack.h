// One block of a packed group as eight vectors of bytes. Included after an isa_*.h.
#pragma once

#include "fast/lanes.h"
#include "fast/packed.h"

namespace cpu::fast {

typedef std::uint16_t U16x32 __attribute__((vector_size(64)));

LANES_INLINE U8x64 bytes_of(U16x32 value) {
  return reinterpret_cast<U8x64>(value);
}

// Shifts go by 16 bits because there is none by 8; the masks after them drop what crossed over.
LANES_INLINE U8x64 shifted_left(U8x64 value, int bits) {
  return bytes_of(reinterpret_cast<U16x32>(value) << bits);
}
LANES_INLINE U8x64 shifted_right(U8x64 value, int bits) {
  return bytes_of(reinterpret_cast<U16x32>(value) >> bits);
}
LANES_INLINE U8x64 shifted(U8x64 value, int left) {
  return left >= 0 ? shifted_left(value, left) : shifted_right(value, -left);
}

template <int Bits>
LANES_INLINE void unpack(const std::uint8_t* block, U8x64 (&w)[8]) {
  if constexpr (Bits == 8) {
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) w[g] = load_lanes<U8x64>(block + 64 * g);
    return;
  }
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const auto nibbles = load_lanes<U8x64>(block + 64 * g);
    w[g] = nibbles & 15;
    w[g + 4] = shifted_right(nibbles, 4) & 15;
  }
  if constexpr (Bits == 5) {
    const auto fifth = load_lanes<U8x64>(block + 256);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) w[g] |= shifted(fifth, 4 - g) & 16;
  }
  if constexpr (Bits == 6) {
    const auto first = load_lanes<U8x64>(block + 256);
    const auto second = load_lanes<U8x64>(block + 320);
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      w[g] |= shifted(first, 4 - 2 * g) & 48;
      w[g + 4] |= shifted(second, 4 - 2 * g) & 48;
    }
  }
}

LANES_INLINE F32x16 load_scales(const std::uint8_t* from) {
  return isa::from_half(load_lanes<U16x16>(from));
}

}  // namespace cpu::fast

// What kernels on the matrix unit (AMX) share.
#pragma once

#include <cstdint>

#include "fast/lanes.h"

namespace cpu::fast {

// The shapes of the eight tiles, as the processor takes them.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int tile, std::uint8_t tile_rows, std::uint16_t bytes) {
    rows[tile] = tile_rows;
    row_bytes[tile] = bytes;
  }
};

// Some compilers don't know that tile instructions read and write memory.
LANES_INLINE void memory_barrier() {
  asm volatile("" ::: "memory");
}

}  // namespace cpu::fast

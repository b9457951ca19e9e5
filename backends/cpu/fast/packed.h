// Weights as the fast kernels stream them. Sixteen rows (a group) lie interleaved; along the inputs a group is a run of
// blocks of 32. In a block, byte 4 * row + j of vector g holds input 4 * g + j of that row, so that one 512-bit integer
// dot product serves four inputs of all sixteen rows:
//
//   four bits    4 vectors: g in the low, g + 4 in the high nibble        256 bytes
//   + fifth bit  1 vector: bit g of each byte belongs to vector g          64 bytes
//   + two bits   2 vectors: bits 2g of the first, 2(g - 4) of the second  128 bytes
//   eight bits   8 vectors, 128 added                                     512 bytes
//
// then sixteen scales as 16-bit floats (two sets where each half of the block has its own), then as many minima in the
// formats that have some. A value is scale * (quant - offset) or scale * quant + minimum. Float formats are interleaved
// input by input.
#pragma once

#include <cstdint>

#include "vt/dtype.h"

namespace cpu::fast {

enum class Layout : std::int32_t { file, q4_sym, q4_min, q5_sym, q5_min, q6_sym, q8_sym, f32, f16, bf16, count };

constexpr int kGroup = 16;  // rows
constexpr int kBlock = 32;  // inputs

struct PackedFormat {
  int bits;
  int offset;      // 0 where a minimum takes its place
  int scale_sets;  // per block

  constexpr bool has_minimum() const { return offset == 0; }
  constexpr std::int64_t quant_bytes() const { return kGroup * kBlock * bits / 8; }
  constexpr std::int64_t block_bytes() const {
    return quant_bytes() + kGroup * 2 * (scale_sets + (has_minimum() ? 1 : 0));
  }
};

constexpr PackedFormat packed_format(Layout layout) {
  switch (layout) {
    case Layout::q4_sym:
      return {.bits = 4, .offset = 8, .scale_sets = 1};
    case Layout::q4_min:
      return {.bits = 4, .offset = 0, .scale_sets = 1};
    case Layout::q5_sym:
      return {.bits = 5, .offset = 16, .scale_sets = 1};
    case Layout::q5_min:
      return {.bits = 5, .offset = 0, .scale_sets = 1};
    case Layout::q6_sym:
      return {.bits = 6, .offset = 32, .scale_sets = 2};
    default:
      return {.bits = 8, .offset = 128, .scale_sets = 1};
  }
}

constexpr bool is_float(Layout layout) {
  return layout >= Layout::f32;
}

constexpr int float_bytes(Layout layout) {
  return layout == Layout::f32 ? 4 : 2;
}

constexpr Layout layout_for(vt::DType dtype) {
  switch (dtype) {
    case vt::DType::Q4_0:
      return Layout::q4_sym;
    case vt::DType::Q4_1:
    case vt::DType::Q4_K:
      return Layout::q4_min;
    case vt::DType::Q5_0:
      return Layout::q5_sym;
    case vt::DType::Q5_1:
    case vt::DType::Q5_K:
      return Layout::q5_min;
    case vt::DType::Q6_K:
      return Layout::q6_sym;
    case vt::DType::Q8_0:
      return Layout::q8_sym;
    case vt::DType::F16:
      return Layout::f16;
    case vt::DType::BF16:
      return Layout::bf16;
    default:
      return Layout::f32;
  }
}

// Bytes of one group over `inputs` inputs.
constexpr std::int64_t group_bytes(Layout layout, std::int64_t inputs) {
  if (is_float(layout)) return inputs * kGroup * float_bytes(layout);
  return inputs / kBlock * packed_format(layout).block_bytes();
}

constexpr std::int64_t groups_of(std::int64_t rows) {
  return (rows + kGroup - 1) / kGroup;
}

}  // namespace cpu::fast

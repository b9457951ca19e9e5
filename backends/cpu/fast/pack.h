// From a file's blocks to packed groups, and back for single rows.
#pragma once

#include <cstdint>

#include "fast/packed.h"
#include "vt/tensor.h"

namespace cpu::fast {

// Packs rows first..first + 16 of a file's tensor (fewer at its end; what is missing becomes 0).
void pack_group(const vt::Tensor& file, std::int64_t first, std::uint8_t* group);

// Row `row` of a packed weight as float32.
void unpack_row(Layout layout, const std::uint8_t* weight, std::int64_t row, std::int64_t inputs, float* out);

}  // namespace cpu::fast

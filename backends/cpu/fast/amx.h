// Products of many tokens by the matrix unit (AMX int8). Same sums in the same order as multiply.h.
#pragma once

#include "fast/kernels.h"

namespace cpu::fast {

// The processor has it, and the kernel lets this process use it.
bool amx_available();

// Takes over from the vector kernels where it is faster. Null for layouts that it doesn't compute.
extern const std::array<Multiply, static_cast<std::size_t>(Layout::count)> kAmxMultiply;

// Wider products are left to the vector kernels.
constexpr std::int64_t kAmxMaxInputs = 1 << 15;

// Fewer tokens than this are left to the vector kernels.
constexpr std::int64_t kAmxTokens = 32;

}  // namespace cpu::fast

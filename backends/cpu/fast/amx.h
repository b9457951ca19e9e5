// The matrix unit (AMX). Products of several tokens in int8: the same sums in the same order as multiply.h. Attention
// in bfloat16: one query or many, it is this unit or never, so that company changes no bits.
#pragma once

#include "fast/kernels.h"

namespace cpu::fast {

// The processor has it, and the kernel lets this process use it.
bool amx_available();
bool amx_bf16_available();

// Takes over from the vector kernels where it is faster. Null for layouts that it doesn't compute.
extern const std::array<Multiply, static_cast<std::size_t>(Layout::count)> kAmxMultiply;

// Wider products are left to the vector kernels.
constexpr std::int64_t kAmxMaxInputs = 1 << 15;

// Fewer tokens than this are left to the vector kernels.
constexpr std::int64_t kAmxTokens = 13;

// Whether attention of this shape is this unit's.
bool amx_attends(std::int64_t head_dim, bool half);
void amx_attend(const AttentionTile& tile);

}  // namespace cpu::fast

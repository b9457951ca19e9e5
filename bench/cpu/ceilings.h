// What this machine can do at most, per thread, measured where the kernels are measured.
#pragma once

#include <cstddef>
#include <cstdint>

// Reads memory once; the sum keeps the compiler from dropping it.
std::uint64_t read_all(const void* memory, std::size_t bytes);

// Fused multiply-adds from registers; returns how many floating-point operations that were.
double float_operations(std::int64_t rounds, float* sink);

// Integer dot products of bytes from registers (0 where the compiler knows no instruction for it); operations.
double byte_operations(std::int64_t rounds, std::int32_t* sink);

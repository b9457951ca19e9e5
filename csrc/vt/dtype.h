// Element types of tensors: plain numbers and the block formats of GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vt {

enum class DType : std::uint8_t {
  F32,
  F16,
  BF16,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q4_K,
  Q5_K,
  Q6_K,
  I32,
  I64,
  U32,
};

// A block is the smallest run of elements that is stored as one unit; plain numbers are blocks of one.
struct BlockShape {
  std::int32_t elements;
  std::int32_t bytes;
};

constexpr BlockShape block_shape(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::I32:
    case DType::U32:
      return {1, 4};
    case DType::F16:
    case DType::BF16:
      return {1, 2};
    case DType::I64:
      return {1, 8};
    case DType::Q4_0:
      return {32, 18};
    case DType::Q4_1:
      return {32, 20};
    case DType::Q5_0:
      return {32, 22};
    case DType::Q5_1:
      return {32, 24};
    case DType::Q8_0:
      return {32, 34};
    case DType::Q4_K:
      return {256, 144};
    case DType::Q5_K:
      return {256, 176};
    case DType::Q6_K:
      return {256, 210};
  }
  return {1, 1};
}

constexpr bool is_quantised(DType dtype) {
  return block_shape(dtype).elements > 1;
}

constexpr std::int64_t bytes_for(DType dtype, std::int64_t elements) {
  return elements / block_shape(dtype).elements * block_shape(dtype).bytes;
}

std::string_view name(DType dtype);

// Throws Error, naming the types that there are.
DType dtype_named(std::string_view name);

}  // namespace vt

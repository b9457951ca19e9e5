// The planes into which a weight is cut in device memory; weight.h says how they are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vt/dtype.h"

namespace vt::gpu {

constexpr int kChunk = 8;  // weights that a lane reads at a time

// Bytes per chunk of each plane.
struct PlaneShape {
  int quants;
  int high;
  int scale_group;  // weights that share a scale; 0: none
  int scale_bytes;
  int super_bytes;  // per 256 weights
};

constexpr PlaneShape plane_shape(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return {32, 0, 0, 0, 0};
    case DType::F16:
    case DType::BF16:
      return {16, 0, 0, 0, 0};
    case DType::Q4_0:
    case DType::Q4_1:
      return {4, 0, 32, 4, 0};
    case DType::Q5_0:
    case DType::Q5_1:
      return {4, 1, 32, 4, 0};
    case DType::Q8_0:
      return {8, 0, 32, 2, 0};
    case DType::Q4_K:
      return {4, 0, 32, 2, 4};
    case DType::Q5_K:
      return {4, 1, 32, 2, 4};
    case DType::Q6_K:
      return {4, 2, 16, 1, 2};
    default:
      return {};
  }
}

struct PlaneOffsets {
  std::size_t high;
  std::size_t scales;
  std::size_t super;
  std::size_t total;
};

constexpr std::size_t align_plane(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

constexpr PlaneOffsets plane_offsets(DType dtype, std::int64_t rows, std::int64_t cols) {
  const PlaneShape shape = plane_shape(dtype);
  const auto chunks = static_cast<std::size_t>(rows * ((cols + kChunk - 1) / kChunk));
  const auto weights = chunks * kChunk;
  PlaneOffsets at{};
  at.high = align_plane(chunks * shape.quants);
  at.scales = at.high + align_plane(chunks * shape.high);
  at.super = at.scales + align_plane(shape.scale_group ? weights / shape.scale_group * shape.scale_bytes : 0);
  at.total = at.super + align_plane(weights / 256 * shape.super_bytes);
  return at;
}

}  // namespace vt::gpu

// Rows of tensors, on the device.
#pragma once

#include "vendor.h"
#include "vt/tensor.h"

namespace vt::gpu {

template <typename T = float>
__device__ inline T* row_at(const Tensor& view, std::int64_t i) {
  return reinterpret_cast<T*>(static_cast<char*>(view.data) + i * view.stride[0]);
}

template <typename T = float>
__device__ inline T* row_at(const Tensor& view, std::int64_t i, std::int64_t j) {
  return reinterpret_cast<T*>(static_cast<char*>(view.data) + i * view.stride[0] + j * view.stride[1]);
}

}  // namespace vt::gpu

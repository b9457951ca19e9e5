// A view of memory with a type and a shape. It owns nothing and may be passed to kernels by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "vt/dtype.h"

namespace vt {

constexpr int kMaxRank = 4;

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::F32;
  std::int32_t rank = 0;
  std::int64_t shape[kMaxRank] = {};   // outermost first
  std::int64_t stride[kMaxRank] = {};  // bytes from one index to the next; the innermost axis is always contiguous

  constexpr bool empty() const { return data == nullptr; }
  constexpr std::int64_t rows() const { return shape[0]; }
  constexpr std::int64_t cols() const { return shape[rank - 1]; }

  constexpr std::int64_t size() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= shape[axis];
    return count;
  }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }

  template <typename T = float>
  T* row(std::int64_t i) const {
    return reinterpret_cast<T*>(static_cast<char*>(data) + i * stride[0]);
  }

  template <typename T = float>
  T* row(std::int64_t i, std::int64_t j) const {
    return reinterpret_cast<T*>(static_cast<char*>(data) + i * stride[0] + j * stride[1]);
  }
};

// A dense view: every axis follows the next without gaps.
constexpr Tensor make_tensor(void* data, DType dtype, std::initializer_list<std::int64_t> shape) {
  Tensor view;
  view.data = data;
  view.dtype = dtype;
  for (const std::int64_t extent : shape) view.shape[view.rank++] = extent;
  std::int64_t step = block_shape(dtype).bytes;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.stride[axis] = step;
    step = axis == view.rank - 1 ? bytes_for(dtype, view.shape[axis]) : step * view.shape[axis];
  }
  return view;
}

// Rows `first`..`first + count`.
constexpr Tensor slice_rows(Tensor view, std::int64_t first, std::int64_t count) {
  view.data = static_cast<char*>(view.data) + first * view.stride[0];
  view.shape[0] = count;
  return view;
}

// Columns `first`..`first + count` of a matrix of plain numbers.
constexpr Tensor slice_cols(Tensor view, std::int64_t first, std::int64_t count) {
  view.data = static_cast<char*>(view.data) + first * view.stride[1];
  view.shape[1] = count;
  return view;
}

// (tokens, heads * dim) seen as (tokens, heads, dim).
constexpr Tensor split_heads(Tensor view, std::int64_t dim) {
  view.rank = 3;
  view.shape[2] = dim;
  view.stride[2] = view.stride[1];
  view.shape[1] /= dim;
  view.stride[1] = dim * view.stride[2];
  return view;
}

}  // namespace vt

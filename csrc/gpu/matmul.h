// One product with a weight, as the kernels that share the work take it.
#pragma once

#include <cstdint>

#include "vt/platform.h"

namespace vt::gpu {

struct Matmul {
  Tensor x;       // (rows, in) F32 or BF16
  Tensor weight;  // (out, in), planes of weight.h
  Tensor up;      // with it: out = silu(x * weight^T) * (x * up^T)
  Tensor out;     // (rows, out) type of x, or F32
  const float* bias = nullptr;
};

// Any number of rows, batch-invariant; meant for few.
void gemv(Queue*, const Matmul&);

// Many rows; portable. Takes no `up`.
void tile_matmul(Queue*, const Matmul&);

// What a backend's own instructions offer for many rows: defined in backends/*/matrix.cu. False: not this product.
bool matrix_matmul(Queue*, const Matmul&, bool batch_invariant);

}  // namespace vt::gpu

// Products of BF16 activations with BF16 weights on tensor cores.
#pragma once

#include "gpu/matmul.h"

namespace vt::gpu::cuda {

// Any number of rows, 64 at a time; batch-invariant: how a row is added up depends on the weight's shape alone.
void skinny_matmul(Queue*, const Matmul&);

// Many rows, on sm_90.
void wide_matmul(Queue*, const Matmul&);

// Whether this build and device can run wide_matmul.
bool has_wide_matmul(Queue*);

}  // namespace vt::gpu::cuda

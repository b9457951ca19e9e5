// A whole decode step of one token in one launch.
#pragma once

#include "vt/ops.h"

namespace vt::gpu::cuda {

bool decode_step(Queue*, const DecodeStepArgs&);

}  // namespace vt::gpu::cuda

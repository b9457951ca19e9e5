// Weights in the form in which the kernels read them.
#pragma once

#include <span>

#include "vt/platform.h"

namespace cpu {

vt::PreparedWeight prepare_weight(vt::Device*, std::span<const vt::Tensor> parts, vt::WeightUse, vt::Precision);
void free_weight(vt::Device*, const vt::PreparedWeight&);

}  // namespace cpu

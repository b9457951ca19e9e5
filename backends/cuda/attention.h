// Attention on tensor cores.
#pragma once

#include <string>

#include "vt/attention.h"

namespace vt::gpu::cuda {

void flash_attention(Queue*, const AttentionArgs&);
std::string flash_attention_refuses(Device*, Precision, const AttentionShape&);

}  // namespace vt::gpu::cuda

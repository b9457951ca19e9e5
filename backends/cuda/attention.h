// Attention on tensor cores.
#pragma once

#include <string>

#include "vt/attention.h"

namespace vt::gpu::cuda {

void flash_attention(Queue*, const AttentionArgs&);

// Steps of one query per request.
void query_attention(Queue*, const AttentionArgs&);
bool serves_queries(const AttentionArgs&);

std::string flash_attention_refuses(Device*, Precision, const AttentionShape&);

}  // namespace vt::gpu::cuda

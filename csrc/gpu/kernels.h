// The ops that csrc/gpu offers to a GPU backend's table.
#pragma once

#include <cstddef>

#include "vt/attention.h"
#include "vt/ops.h"

namespace vt::gpu {

void embedding(Queue*, const EmbeddingArgs&);
void matmul(Queue*, const MatmulArgs&);
void matmul_silu_mul(Queue*, const MatmulSiluMulArgs&);
void rms_norm(Queue*, const RmsNormArgs&);
void rope(Queue*, const RopeArgs&);
void silu_mul(Queue*, const SiluMulArgs&);
void copy_blocks(Queue*, const CopyBlocksArgs&);
void gather_rows(Queue*, const GatherRowsArgs&);
void logits_processors(Queue*, const LogitsProcessorsArgs&);
void sample(Queue*, const SampleArgs&);
void logprobs(Queue*, const LogprobsArgs&);
void count_tokens(Queue*, const CountTokensArgs&);
void combine(Queue*, const CombineArgs&);
void scatter_last_sampled(Queue*, const ScatterLastSampledArgs&);
void apply_last_sampled_ops(Queue*, const ApplyLastSampledOpsArgs&);

void kv_write(Queue*, const KvWriteArgs&);
void rope_kv_write(Queue*, const RopeKvWriteArgs&);
void paged_attention(Queue*, const AttentionArgs&);
std::string paged_attention_refuses(Device*, Precision, const AttentionShape&);
std::size_t paged_attention_workspace(Device*, const AttentionShape&);

PreparedWeight prepare_weight(Device*, std::span<const Tensor> parts, WeightUse, Precision);
void free_weight(Device*, const PreparedWeight&);

}  // namespace vt::gpu

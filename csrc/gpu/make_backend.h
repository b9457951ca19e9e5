// A GPU backend put together from csrc/gpu; its folder adds the name and, if it has them, better attention
// backends and more ops.
#pragma once

#include <span>
#include <string_view>

#include "gpu/kernels.h"
#include "gpu/platform.h"
#include "vt/backend.h"

namespace vt::gpu {

inline constexpr AttentionBackend kPagedAttention{
    .name = "paged",
    .refuses = paged_attention_refuses,
    .workspace_bytes = paged_attention_workspace,
    .kv_write = kv_write,
    .attention = paged_attention,
    .rope_kv_write = rope_kv_write,
};

inline const OpTable& op_table(Device*, Precision) {
  static constexpr OpTable ops{
      .embedding = embedding,
      .matmul = matmul,
      .matmul_silu_mul = matmul_silu_mul,
      .rms_norm = rms_norm,
      .rope = rope,
      .silu_mul = silu_mul,
      .copy_blocks = copy_blocks,
      .gather_rows = gather_rows,
      .logits_processors = logits_processors,
      .sample = sample,
      .logprobs = logprobs,
      .count_tokens = count_tokens,
      .combine = combine,
      .scatter_last_sampled = scatter_last_sampled,
      .apply_last_sampled_ops = apply_last_sampled_ops,
  };
  return ops;
}

inline Backend make_backend(std::string_view name, std::span<const AttentionBackend> attention,
                            const OpTable& (*ops)(Device*, Precision) = op_table) {
  return {.name = name, .platform = platform(), .ops = ops, .attention = attention};
}

}  // namespace vt::gpu

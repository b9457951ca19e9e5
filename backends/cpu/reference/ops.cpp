// The reference op table.
#include "reference/ops.h"

#include <array>

namespace cpu::reference {
namespace {

std::string refuses(vt::Device*, vt::Precision, const vt::AttentionShape&) {
  return "";
}

constexpr std::array kBackends{vt::AttentionBackend{
    .name = "reference",
    .refuses = refuses,
    .workspace_bytes = [](vt::Device*, const vt::AttentionShape&) -> std::size_t { return 0; },
    .kv_write = kv_write,
    .attention = attention,
}};

}  // namespace

constinit const vt::OpTable kOps{
    .embedding = embedding,
    .matmul = matmul,
    .rms_norm = rms_norm,
    .rope = rope,
    .silu_mul = silu_mul,
    .copy_blocks = copy_blocks,
    .gather_rows = gather_rows,
    .logits_processors = logits_processors,
    .sample = sample,
    .logprobs = logprobs,
    .count_tokens = count_tokens,
    .dequantize = dequantize,
};

constinit const std::span<const vt::AttentionBackend> kAttention{kBackends};

}  // namespace cpu::reference

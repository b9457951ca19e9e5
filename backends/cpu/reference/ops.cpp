// The reference op table.
#include "reference/ops.h"

namespace cpu::reference {
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

}  // namespace cpu::reference

// The scalar kernels: portable, threaded, every output reduced in one fixed order. They are the oracle of all others.
#pragma once

#include "vt/backend.h"

namespace cpu::reference {

void embedding(vt::Queue*, const vt::EmbeddingArgs&);
void matmul(vt::Queue*, const vt::MatmulArgs&);
void rms_norm(vt::Queue*, const vt::RmsNormArgs&);
void rope(vt::Queue*, const vt::RopeArgs&);
void silu_mul(vt::Queue*, const vt::SiluMulArgs&);
void copy_blocks(vt::Queue*, const vt::CopyBlocksArgs&);
void gather_rows(vt::Queue*, const vt::GatherRowsArgs&);
void logits_processors(vt::Queue*, const vt::LogitsProcessorsArgs&);
void sample(vt::Queue*, const vt::SampleArgs&);
void logprobs(vt::Queue*, const vt::LogprobsArgs&);
void count_tokens(vt::Queue*, const vt::CountTokensArgs&);
void dequantize(vt::Queue*, const vt::DequantizeArgs&);
void kv_write(vt::Queue*, const vt::KvWriteArgs&);
void attention(vt::Queue*, const vt::AttentionArgs&);

extern const vt::OpTable kOps;

}  // namespace cpu::reference

// The op table of fast mode: vector kernels where they pay, the reference's ops where they don't.
#pragma once

#include "vt/backend.h"

namespace cpu::fast {

void matmul(vt::Queue*, const vt::MatmulArgs&);
void matmul_silu_mul(vt::Queue*, const vt::MatmulSiluMulArgs&);
void embedding(vt::Queue*, const vt::EmbeddingArgs&);
void rms_norm(vt::Queue*, const vt::RmsNormArgs&);
void rope(vt::Queue*, const vt::RopeArgs&);
void silu_mul(vt::Queue*, const vt::SiluMulArgs&);
void sample(vt::Queue*, const vt::SampleArgs&);
void logprobs(vt::Queue*, const vt::LogprobsArgs&);
void kv_write(vt::Queue*, const vt::KvWriteArgs&);
void attention(vt::Queue*, const vt::AttentionArgs&);

// Why `attention` can't serve a model, or empty: tiled where blocks are whole runs of sixteen positions with transposed
// keys, gathered (same bits, slower) where they are not.
std::string tiled_refuses(vt::Device*, vt::Precision, const vt::AttentionShape&);
std::string gathered_refuses(vt::Device*, vt::Precision, const vt::AttentionShape&);

extern const vt::OpTable kOps;

}  // namespace cpu::fast

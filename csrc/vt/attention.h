// Attention backends: several ways to attend may live in one backend; the first that supports the model is taken.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "vt/ops.h"

namespace vt {

struct AttentionShape {
  std::int32_t heads;
  std::int32_t kv_heads;
  std::int32_t head_dim;
  std::int32_t block_size;
  DType activation_dtype;
  DType kv_dtype;
  std::int32_t max_num_seqs;
  std::int32_t max_num_batched_tokens;
  std::int32_t max_seq_len;
};

struct AttentionBackend {
  std::string_view name;
  // Empty if it can, else why not ("head_dim 80 is not a multiple of 16").
  std::string (*refuses)(Device*, Precision, const AttentionShape&);
  std::size_t (*workspace_bytes)(Device*, const AttentionShape&);
  void (*kv_write)(Queue*, const KvWriteArgs&);
  void (*attention)(Queue*, const AttentionArgs&);
  // Optional: without it the model calls rms_norm, rope and kv_write.
  void (*rope_kv_write)(Queue*, const RopeKvWriteArgs&) = nullptr;
  // Keys lie transposed in runs of this many positions, (head_dim, key_run) instead of (key_run, head_dim). 0: they
  // don't.
  std::int32_t key_run = 0;
};

struct Backend;

// The named one, or the first of the backend's list that does not refuse. Throws Error saying why each refused.
const AttentionBackend& choose_attention(const Backend&, Device*, Precision, const AttentionShape&,
                                         std::string_view name);

}  // namespace vt

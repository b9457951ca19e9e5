// The forward pass of one step: tokens in, hidden states and logits out.
#pragma once

#include <vector>

#include "model/model.h"

namespace model {

// All on the device.
struct StepInputs {
  const std::int32_t* input_ids;        // (T)
  const std::int32_t* positions;        // (T)
  const std::int64_t* slot_mapping;     // (T)
  const std::int32_t* query_start_loc;  // (R + 1)
  const std::int32_t* seq_lens;         // (R)
  const std::int32_t* block_table;      // (R, block_table_stride)
  std::int32_t block_table_stride;
  std::int32_t num_tokens;  // T
  std::int32_t num_reqs;    // R
  std::int32_t max_query_len;
  std::int32_t max_seq_len;
};

struct Limits {
  std::int64_t tokens;      // per step
  std::int64_t logit_rows;  // per call of `logits`
  std::int64_t positions;   // longest sequence
};

class Forward {
 public:
  Forward(const Model& model, const vt::AttentionBackend& attention, const vt::AttentionShape& shape,
          const Limits& limits, bool batch_invariant);

  // Runs all layers and the last norm; writes keys and values into `cache`, one entry per layer.
  void hidden(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache);

  // Logits of `count` tokens of the step; `indices` (count) on the device; null: the first `count`.
  vt::Tensor logits(vt::Queue* queue, const std::int32_t* indices, std::int64_t count);
  vt::Tensor logits_view(std::int64_t count) const;  // where `logits` leaves them

  // One token of each request: `hidden`, then `logits` of all of them; in one launch where the backend can.
  void decode(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache);

 private:
  void embed(vt::Queue* queue, const StepInputs& inputs);
  bool decode_at_once(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache);
  void layers(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache);
  void layer(vt::Queue* queue, const Layer& layer, const StepInputs& inputs, const vt::KvCache& cache, bool first);
  void attend(vt::Queue* queue, const Layer& layer, const StepInputs& inputs, const vt::KvCache& cache);
  void place(vt::Queue* queue, const Layer& layer, const StepInputs& inputs, const vt::KvCache& cache,
             const vt::Tensor& q, const vt::Tensor& k, const vt::Tensor& v);
  void feed_forward(vt::Queue* queue, const Layer& layer, std::int64_t tokens);
  void norm(vt::Queue* queue, const Weight& weight, std::int64_t tokens, bool add);
  void head_norm(vt::Queue* queue, const Weight& weight, const vt::Tensor& heads);
  void multiply(vt::Queue* queue, const Linear& linear, const vt::Tensor& x, const vt::Tensor& out);
  vt::Tensor activation(const vt::Buffer& buffer, std::int64_t tokens, std::int64_t width) const;

  const Model& model_;
  std::vector<vt::DecodeLayer> decode_layers_;  // but for the cache; empty where the weights come in more parts
  const vt::AttentionBackend& attention_;
  const bool batch_invariant_;
  const vt::DType dtype_;
  vt::Buffer residual_;  // (tokens, hidden) F32
  vt::Buffer normed_;    // (tokens, hidden)
  vt::Buffer delta_;     // (tokens, hidden) what a block adds to the residual
  vt::Buffer qkv_;       // (tokens, (heads + 2 * kv_heads) * head_dim)
  vt::Buffer mixed_;     // (tokens, heads * head_dim) attention's output
  vt::Buffer gate_up_;   // (tokens, 2 * ffn); empty where fused
  vt::Buffer ffn_;       // (tokens, ffn)
  vt::Buffer gathered_;  // (logit_rows, hidden)
  vt::Buffer logits_;    // (logit_rows, vocab) F32
  vt::Buffer cos_sin_;   // (positions, head_dim) F32
  vt::Buffer workspace_;
};

}  // namespace model

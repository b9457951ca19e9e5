// The op table: one args struct per op. Shapes stand in trailing comments; T = tokens of the step, R = requests of the
// step, N = rows of logits. Tensors are on the device; views may be strided between rows, never inside a row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "vt/platform.h"

namespace vt {

struct EmbeddingArgs {
  const std::int32_t* ids;  // (T)
  PreparedWeight weight;    // (vocab, hidden), use embedding or tied
  Tensor out;               // (T, hidden) F32
};

// out = x * weight^T + bias. Both GEMV and GEMM; the weight may be quantised.
struct MatmulArgs {
  Tensor x;                      // (T, in) activation type
  PreparedWeight weight;         // (out, in), use matmul or tied
  Tensor bias;                   // (out) F32, or empty
  Tensor out;                    // (T, out) activation type or F32
  bool batch_invariant = false;  // the same bits for a row whatever the other rows are and however many
};

// out = silu(x * gate^T) * (x * up^T). Optional: the model falls back on matmul and silu_mul.
struct MatmulSiluMulArgs {
  Tensor x;             // (T, in) activation type
  PreparedWeight gate;  // (ffn, in)
  PreparedWeight up;    // (ffn, in)
  Tensor out;           // (T, ffn) activation type
  bool batch_invariant = false;
};

// residual += x where both are given; out = (residual or x) / rms * weight. Rank 3 normalises each head on its own.
struct RmsNormArgs {
  Tensor x;         // (T, dim) or (T, heads, dim) activation type; empty: the residual alone
  Tensor residual;  // (T, dim) F32, updated in place; or empty
  Tensor weight;    // (dim) F32
  Tensor out;       // as x (may be x itself), activation type
  float eps;
};

// Rotates q and k in place.
struct RopeArgs {
  Tensor q;                       // (T, heads, head_dim) activation type
  Tensor k;                       // (T, kv_heads, head_dim) activation type
  const std::int32_t* positions;  // (T)
  const float* cos_sin;           // (max_positions, head_dim): head_dim / 2 cosines, then as many sines
  bool interleaved;               // pairs (0, 1), (2, 3)..; else (i, i + head_dim / 2)
};

// out = silu(gate) * up.
struct SiluMulArgs {
  Tensor gate_up;  // (T, 2 * ffn): gate, then up; activation type
  Tensor out;      // (T, ffn) activation type
};

// One layer's keys and values: the tokens of one head in one block lie together.
struct KvCache {
  Tensor keys;    // (num_blocks, kv_heads, block_size, head_dim) F32, F16 or BF16
  Tensor values;  // same
};

// Head norms (where the model has them), rope of q in place and of k, and the write of k and v, in one launch.
struct RopeKvWriteArgs {
  Tensor q;       // (T, heads, head_dim) activation type, rotated in place
  Tensor k;       // (T, kv_heads, head_dim); only the cache gets it rotated
  Tensor v;       // (T, kv_heads, head_dim)
  Tensor q_norm;  // (head_dim) F32, or empty
  Tensor k_norm;  // (head_dim) F32, or empty
  float eps;
  const std::int32_t* positions;     // (T)
  const float* cos_sin;              // as RopeArgs
  bool interleaved;                  // as RopeArgs
  const std::int64_t* slot_mapping;  // (T) as KvWriteArgs
  KvCache cache;
};

struct KvWriteArgs {
  Tensor k;                          // (T, kv_heads, head_dim) activation type
  Tensor v;                          // (T, kv_heads, head_dim) activation type
  const std::int64_t* slot_mapping;  // (T) block * block_size + offset; negative: not written
  KvCache cache;
};

// Causal attention over the paged cache; keys of the step's own tokens are already written.
struct AttentionArgs {
  Tensor q;  // (T, heads, head_dim) activation type
  KvCache cache;
  const std::int32_t* block_table;      // (R, block_table_stride)
  const std::int32_t* query_start_loc;  // (R + 1) first token of each request
  const std::int32_t* seq_lens;         // (R) tokens in the cache, the step's own included; 0: a padding row
  std::int32_t block_table_stride;
  std::int32_t num_reqs;
  std::int32_t max_query_len;  // upper bounds, for the shape of the launch
  std::int32_t max_seq_len;
  float scale;
  Tensor out;                 // (T, heads, head_dim) activation type
  void* workspace = nullptr;  // of the size that the attention backend asked for
  bool batch_invariant = false;
};

struct CopyBlocksArgs {
  KvCache cache;
  const std::int32_t* source;  // (count)
  const std::int32_t* target;  // (count), disjoint from source
  std::int32_t count;
};

// out[i] = x[indices[i]]
struct GatherRowsArgs {
  Tensor x;                     // (T, dim) any plain type
  const std::int32_t* indices;  // (N)
  Tensor out;                   // (N, dim) same type
};

// out = processed logits; logits and out may be the same. Order: bias, allowed mask, repetition, presence and
// frequency.
struct LogitsProcessorsArgs {
  Tensor logits;                    // (N, vocab) F32
  const std::int32_t* idx_mapping;  // (N) row of each line of logits
  const std::int32_t* bias_start;   // (N + 1) into bias_ids; null: no biases
  const std::int32_t* bias_ids;
  const float* bias_values;
  const std::uint32_t* allowed;       // (N, ceil(vocab / 32)) 1 = allowed; null: no masks
  const float* repetition;            // (N) 1 = off; null: no penalties at all
  const float* presence;              // (N)
  const float* frequency;             // (N)
  const std::uint32_t* prompt_mask;   // (max_num_seqs, ceil(vocab / 32)) tokens of the prompt
  const std::int32_t* output_counts;  // (max_num_seqs, vocab)
  Tensor out;                         // (N, vocab) F32
};

// Temperature, top_k, top_p, min_p, one draw. Temperature 0 takes the largest logit, the lowest id on a tie. Candidates
// are ranked by falling logit, then rising id. top_p keeps the shortest prefix of that ranking whose share (of what
// top_k left) reaches top_p; min_p keeps what has at least min_p times the best probability. The draw is
// `philox_uniform(seed, index)` times the kept mass, walked in order of ids.
struct SampleArgs {
  Tensor logits;              // (N, vocab) F32
  const float* temperature;   // (N)
  const std::int32_t* top_k;  // (N) 0: off
  const float* top_p;         // (N)
  const float* min_p;         // (N)
  const std::uint64_t* seed;  // (N)
  const std::int64_t* index;  // (N) which output token of the request this is
  bool all_greedy;            // every temperature is 0: the other arrays may be null
  std::int64_t* token_ids;    // (N) out
};

// From raw logits. Ranked by falling logit, then rising id; a vocabulary smaller than num_top leaves id -1, -infinity.
struct LogprobsArgs {
  Tensor logits;                  // (N, vocab) F32
  const std::int64_t* token_ids;  // (N)
  std::int32_t num_top;           // at least 2
  float* logprobs;                // (N) out, of token_ids
  std::int32_t* top_ids;          // (N, num_top) out
  float* top_logprobs;            // (N, num_top) out
};

// output_counts[idx_mapping[i], token_ids[i]] += 1, for requests that have penalties.
struct CountTokensArgs {
  const std::int64_t* token_ids;    // (N)
  const std::int32_t* idx_mapping;  // (N) negative: not counted
  std::int32_t count;
  std::int32_t* output_counts;  // (max_num_seqs, vocab)
  std::int64_t vocab_size;
};

// The async device mirror. With the queue these are the twelve parameters of combine: it writes the tokens that only
// the device knows into input_ids. A request whose seq_len is at most its prefill_len keeps its prompt tokens. Else the
// last `num_logits` tokens of its query are the last sampled one(s), then its draft tokens.
struct CombineArgs {
  std::int32_t* input_ids;                  // (T) in and out
  const std::int32_t* idx_mapping;          // (num_reqs) row of each request
  const std::int32_t* last_sampled_tokens;  // (max_num_seqs, num_new_sampled_tokens)
  const std::int32_t* query_start_loc;      // (num_reqs + 1)
  const std::int32_t* seq_lens;             // (num_reqs) tokens after this step
  const std::int32_t* prefill_len;          // (max_num_seqs) by row: tokens that the host gave
  const std::int32_t* draft_tokens;         // (max_num_seqs, draft_tokens_stride); null without speculation
  std::int64_t draft_tokens_stride;
  const std::int32_t* cu_num_logits;  // (num_reqs + 1) running sum of sampled + draft tokens; null: no drafts
  std::int32_t num_reqs;
  std::int32_t num_new_sampled_tokens;  // 1
};

// last_sampled_tokens[idx_mapping[i]] = token_ids[i]
struct ScatterLastSampledArgs {
  const std::int64_t* token_ids;      // (count) the sampler's output
  const std::int32_t* idx_mapping;    // (count) negative: skipped
  std::int32_t* last_sampled_tokens;  // (max_num_seqs)
  std::int32_t count;
};

// Replays changes of requests in order: source < 0 sets `row` to `token`, else moves row `source` to `row`.
struct LastSampledOp {
  std::int32_t row;
  std::int32_t source;
  std::int32_t token;
};

struct ApplyLastSampledOpsArgs {
  std::int32_t* last_sampled_tokens;  // (max_num_seqs)
  const LastSampledOp* ops;           // (count) on the device
  std::int32_t count;
};

// One layer's weights and cache, as decode_step takes them.
struct DecodeLayer {
  Tensor attn_norm;       // (hidden) F32
  PreparedWeight qkv;     // ((heads + 2 * kv_heads) * head_dim, hidden)
  Tensor qkv_bias;        // (outputs of qkv) F32, or empty
  Tensor q_norm;          // (head_dim) F32, or empty
  Tensor k_norm;          // (head_dim) F32, or empty
  PreparedWeight output;  // (hidden, heads * head_dim)
  Tensor ffn_norm;        // (hidden) F32
  PreparedWeight gate;    // (ffn, hidden)
  PreparedWeight up;      // (ffn, hidden)
  PreparedWeight down;    // (hidden, ffn)
  KvCache cache;
};

// All layers, the last norm and the head, for one token of each request. Optional; false: not this step, nothing was
// done, and the model runs op by op.
struct DecodeStepArgs {
  std::span<const DecodeLayer> layers;
  Tensor residual;      // (T, hidden) F32, the tokens' embeddings; used up
  Tensor output_norm;   // (hidden) F32
  PreparedWeight head;  // (vocab, hidden)
  float eps;
  float scale;                       // as AttentionArgs
  const std::int32_t* positions;     // (T)
  const float* cos_sin;              // as RopeArgs
  bool interleaved;                  // as RopeArgs
  const std::int64_t* slot_mapping;  // (T) as KvWriteArgs
  const std::int32_t* block_table;   // (T, block_table_stride)
  const std::int32_t* seq_lens;      // (T) as AttentionArgs
  std::int32_t block_table_stride;
  Tensor logits;  // (T, vocab) F32 out
};

struct DequantizeArgs {
  Tensor in;   // (rows, cols) any weight format, rows as in the file
  Tensor out;  // (rows, cols) F32
};

// An op left null is not there. `require` turns a missing one into an error that names it.
struct OpTable {
  void (*embedding)(Queue*, const EmbeddingArgs&) = nullptr;
  void (*matmul)(Queue*, const MatmulArgs&) = nullptr;
  void (*matmul_silu_mul)(Queue*, const MatmulSiluMulArgs&) = nullptr;
  void (*rms_norm)(Queue*, const RmsNormArgs&) = nullptr;
  void (*rope)(Queue*, const RopeArgs&) = nullptr;
  void (*silu_mul)(Queue*, const SiluMulArgs&) = nullptr;
  void (*copy_blocks)(Queue*, const CopyBlocksArgs&) = nullptr;
  void (*gather_rows)(Queue*, const GatherRowsArgs&) = nullptr;
  void (*logits_processors)(Queue*, const LogitsProcessorsArgs&) = nullptr;
  void (*sample)(Queue*, const SampleArgs&) = nullptr;
  void (*logprobs)(Queue*, const LogprobsArgs&) = nullptr;
  void (*count_tokens)(Queue*, const CountTokensArgs&) = nullptr;
  void (*combine)(Queue*, const CombineArgs&) = nullptr;
  void (*scatter_last_sampled)(Queue*, const ScatterLastSampledArgs&) = nullptr;
  void (*apply_last_sampled_ops)(Queue*, const ApplyLastSampledOpsArgs&) = nullptr;
  void (*dequantize)(Queue*, const DequantizeArgs&) = nullptr;
  bool (*decode_step)(Queue*, const DecodeStepArgs&) = nullptr;
};

// Names of every op, in the order of the table.
std::span<const std::string_view> op_names();

// Throws Error if there is no op of this name at all.
bool has_op(const OpTable& ops, std::string_view name);

}  // namespace vt

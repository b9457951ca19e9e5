// What one step computes, worked out and checked on the host before anything is launched.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runner/rows.h"

namespace runner {

struct Scheduled {
  std::span<const std::int32_t> rows;                          // (n)
  std::span<const std::int32_t> num_computed;                  // (n)
  std::span<const std::int32_t> num_tokens;                    // (n)
  std::map<std::int32_t, std::vector<std::uint32_t>> allowed;  // row -> mask over the vocabulary
};

struct Bounds {
  std::int64_t max_num_batched_tokens;
  std::int64_t max_len;
  std::int64_t block_size;
  std::int64_t vocab_size;
};

// One line of logits that gets a token.
struct SampledLine {
  std::int32_t row;
  std::int32_t token_index;  // in the step
  std::uint64_t generation;
  std::int64_t position;  // where the new token stands in the row
};

// A run of prompt positions that are scored.
struct PromptSpan {
  std::int32_t row;
  std::int32_t token_index;             // of the first hidden state
  std::int64_t start;                   // prompt position of the first token scored
  std::vector<std::int64_t> token_ids;  // (n) the tokens that stand there
};

struct Plan {
  std::vector<std::int32_t> input_ids;        // (T)
  std::vector<std::int32_t> positions;        // (T)
  std::vector<std::int64_t> slot_mapping;     // (T)
  std::vector<std::int32_t> query_start_loc;  // (R + 1)
  std::vector<std::int32_t> seq_lens;         // (R)
  std::vector<std::int32_t> idx_mapping;      // (R)
  std::vector<std::int32_t> prefill_len;      // (max_num_seqs) by row; for the mirror
  std::vector<std::int32_t> block_table;      // (R, block_table_stride)
  std::int32_t block_table_stride = 0;
  std::int32_t max_query_len = 0;
  std::int32_t max_seq_len = 0;
  std::vector<SampledLine> sampled;
  std::vector<PromptSpan> prompt_spans;

  std::int32_t num_tokens() const { return static_cast<std::int32_t>(input_ids.size()); }
  std::int32_t num_reqs() const { return static_cast<std::int32_t>(seq_lens.size()); }
  bool decode_only() const { return max_query_len == 1 && sampled.size() == seq_lens.size(); }

  // Adds requests that do nothing until there are `count`, and widens the block table.
  void pad(std::int32_t count, std::int32_t stride);
};

// Throws BadArgument. With the mirror the last token of a request may be pending.
Plan make_plan(Rows& rows, const Scheduled& scheduled, const Bounds& bounds, bool mirror);

}  // namespace runner

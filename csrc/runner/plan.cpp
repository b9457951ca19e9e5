// See plan.h.
#include "runner/plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "vt/error.h"

namespace runner {
namespace {

[[noreturn]] void refuse(std::int32_t row, const std::string& message) {
  throw vt::BadArgument("row " + std::to_string(row) + ": " + message);
}

struct Request {
  std::int32_t row;
  std::int64_t computed;
  std::int64_t tokens;
  std::int64_t end() const { return computed + tokens; }
};

void check_request(const Row& state, const Request& request, const Bounds& bounds, bool mirror) {
  if (request.computed < 0 || request.tokens < 1) {
    refuse(request.row, "num_computed must be 0 or more and num_tokens 1 or more, not " +
                            std::to_string(request.computed) + " and " + std::to_string(request.tokens));
  }
  if (request.end() > state.size()) {
    refuse(request.row, "has " + std::to_string(state.size()) + " tokens, not " + std::to_string(request.end()));
  }
  if (request.end() > bounds.max_len) {
    refuse(request.row, "position " + std::to_string(request.end() - 1) + " is beyond the longest sequence of " +
                            std::to_string(bounds.max_len) + " tokens");
  }
  const std::int64_t needed = (request.end() + bounds.block_size - 1) / bounds.block_size;
  if (needed > static_cast<std::int64_t>(state.blocks.size())) {
    refuse(request.row, "needs " + std::to_string(needed) + " blocks and has " + std::to_string(state.blocks.size()));
  }
  for (std::int64_t i = request.computed; i < request.end(); ++i) {
    const bool last = mirror && i + 1 == request.end() && request.end() == state.size();
    if (state.tokens[static_cast<std::size_t>(i)] == kPending && !last) {
      refuse(request.row, "token " + std::to_string(i) + " is not known yet; wait for its step");
    }
  }
}

void append_tokens(Plan& plan, const Row& state, const Request& request, const Bounds& bounds) {
  for (std::int64_t position = request.computed; position < request.end(); ++position) {
    const std::int32_t id = state.tokens[static_cast<std::size_t>(position)];
    const std::int64_t block = state.blocks[static_cast<std::size_t>(position / bounds.block_size)];
    plan.input_ids.push_back(std::max(id, 0));
    plan.positions.push_back(static_cast<std::int32_t>(position));
    plan.slot_mapping.push_back(block * bounds.block_size + position % bounds.block_size);
  }
}

void append_prompt_span(Plan& plan, const Row& state, const Request& request, std::int32_t first_token) {
  const std::int64_t end = std::min(request.end(), state.num_prompt - 1);
  if (!state.sampling.prompt_logprobs || request.computed >= end) return;
  PromptSpan span{.row = request.row, .token_index = first_token, .start = request.computed + 1, .token_ids = {}};
  for (std::int64_t i = request.computed; i < end; ++i) {
    span.token_ids.push_back(state.tokens[static_cast<std::size_t>(i + 1)]);
  }
  plan.prompt_spans.push_back(std::move(span));
}

void append_request(Plan& plan, const Row& state, const Request& request, const Bounds& bounds) {
  const auto first_token = plan.num_tokens();
  append_tokens(plan, state, request, bounds);
  plan.query_start_loc.push_back(plan.num_tokens());
  plan.seq_lens.push_back(static_cast<std::int32_t>(request.end()));
  plan.idx_mapping.push_back(request.row);
  // Only a row's newest token may come from the device; anything before it is the host's.
  const bool newest = request.end() == state.size() && state.size() > state.given;
  plan.prefill_len[static_cast<std::size_t>(request.row)] =
      newest ? static_cast<std::int32_t>(state.given) : std::numeric_limits<std::int32_t>::max();
  plan.max_query_len = std::max(plan.max_query_len, static_cast<std::int32_t>(request.tokens));
  plan.max_seq_len = std::max(plan.max_seq_len, plan.seq_lens.back());
  append_prompt_span(plan, state, request, first_token);
  if (request.end() != state.size()) return;
  plan.sampled.push_back({.row = request.row,
                          .token_index = plan.num_tokens() - 1,
                          .generation = state.generation,
                          .position = request.end()});
}

void fill_block_table(Plan& plan, Rows& rows, const Bounds& bounds) {
  plan.block_table_stride = static_cast<std::int32_t>((plan.max_seq_len + bounds.block_size - 1) / bounds.block_size);
  plan.block_table.assign(plan.seq_lens.size() * static_cast<std::size_t>(plan.block_table_stride), 0);
  for (std::size_t i = 0; i < plan.seq_lens.size(); ++i) {
    const std::vector<std::int32_t>& blocks = rows.used(plan.idx_mapping[i]).blocks;
    const std::size_t count = std::min(blocks.size(), static_cast<std::size_t>(plan.block_table_stride));
    std::copy_n(blocks.begin(), count,
                plan.block_table.begin() + static_cast<std::ptrdiff_t>(i) * plan.block_table_stride);
  }
}

void check_masks(const Scheduled& scheduled, const Bounds& bounds) {
  const auto words = static_cast<std::size_t>((bounds.vocab_size + 31) / 32);
  const std::uint32_t in_last = bounds.vocab_size % 32 ? (1u << (bounds.vocab_size % 32)) - 1 : ~0u;
  for (const auto& [row, mask] : scheduled.allowed) {
    if (std::find(scheduled.rows.begin(), scheduled.rows.end(), row) == scheduled.rows.end()) {
      refuse(row, "has an allowed mask but is not scheduled");
    }
    if (mask.size() != words) {
      refuse(row, "an allowed mask has " + std::to_string(words) + " words, not " + std::to_string(mask.size()));
    }
    const bool any = std::any_of(mask.begin(), mask.end() - 1, [](std::uint32_t word) { return word != 0; });
    if (!any && (mask.back() & in_last) == 0) refuse(row, "its allowed mask leaves no token");
  }
}

}  // namespace

Plan make_plan(Rows& rows, const Scheduled& scheduled, const Bounds& bounds, bool mirror) {
  if (scheduled.rows.empty()) throw vt::BadArgument("a step needs at least one row");
  if (scheduled.num_computed.size() != scheduled.rows.size() || scheduled.num_tokens.size() != scheduled.rows.size()) {
    throw vt::BadArgument("rows, num_computed and num_tokens must have the same length");
  }
  check_masks(scheduled, bounds);
  Plan plan;
  plan.query_start_loc.push_back(0);
  plan.prefill_len.assign(static_cast<std::size_t>(rows.count()), std::numeric_limits<std::int32_t>::max());
  std::set<std::int32_t> seen;
  for (std::size_t i = 0; i < scheduled.rows.size(); ++i) {
    const Request request{scheduled.rows[i], scheduled.num_computed[i], scheduled.num_tokens[i]};
    const Row& state = rows.used(request.row);
    if (!seen.insert(request.row).second) refuse(request.row, "is scheduled twice");
    check_request(state, request, bounds, mirror);
    append_request(plan, state, request, bounds);
    if (plan.num_tokens() > bounds.max_num_batched_tokens) {
      throw vt::BadArgument("a step may have " + std::to_string(bounds.max_num_batched_tokens) + " tokens, not more");
    }
  }
  fill_block_table(plan, rows, bounds);
  return plan;
}

void Plan::pad(std::int32_t count, std::int32_t stride) {
  std::vector<std::int32_t> wide(static_cast<std::size_t>(count) * static_cast<std::size_t>(stride), 0);
  for (std::int32_t i = 0; i < num_reqs(); ++i) {
    std::copy_n(block_table.begin() + i * block_table_stride, block_table_stride, wide.begin() + i * stride);
  }
  block_table = std::move(wide);
  block_table_stride = stride;
  while (num_reqs() < count) {
    input_ids.push_back(0);
    positions.push_back(0);
    slot_mapping.push_back(-1);
    seq_lens.push_back(0);
    idx_mapping.push_back(-1);
    query_start_loc.push_back(num_tokens());
  }
}

}  // namespace runner

// See rows.h.
#include "runner/rows.h"

#include <cmath>
#include <string>

#include "vt/error.h"

namespace runner {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw vt::BadArgument(message);
}

void require(bool fine, const char* what, float value) {
  if (!fine) refuse(std::string(what) + ", not " + std::to_string(value));
}

}  // namespace

void validate(const Sampling& s) {
  require(std::isfinite(s.temperature) && s.temperature >= 0.0f, "temperature must be 0 or more", s.temperature);
  require(s.top_k >= 0, "top_k must be 0 (off) or more", static_cast<float>(s.top_k));
  require(s.top_p > 0.0f && s.top_p <= 1.0f, "top_p must lie in (0, 1]", s.top_p);
  require(s.min_p >= 0.0f && s.min_p <= 1.0f, "min_p must lie in [0, 1]", s.min_p);
  require(std::isfinite(s.repetition_penalty) && s.repetition_penalty > 0.0f,
          "repetition_penalty must be larger than 0", s.repetition_penalty);
  require(std::isfinite(s.presence_penalty), "presence_penalty must be a number", s.presence_penalty);
  require(std::isfinite(s.frequency_penalty), "frequency_penalty must be a number", s.frequency_penalty);
  require(s.top_logprobs >= 0 && s.top_logprobs <= kMaxTopLogprobs, "top_logprobs must lie in 0..20",
          static_cast<float>(s.top_logprobs));
  for (const auto& [id, bias] : s.logit_bias) require(!std::isnan(bias), "logit_bias must be a number", bias);
}

Rows::Rows(std::int32_t count, std::int64_t vocab_size, std::int64_t max_len, std::int32_t num_blocks)
    : rows_(static_cast<std::size_t>(count)), vocab_size_(vocab_size), max_len_(max_len), num_blocks_(num_blocks) {}

Row& Rows::slot(std::int32_t row) {
  if (row < 0 || row >= count()) {
    refuse("row must lie in 0.." + std::to_string(count() - 1) + ", not " + std::to_string(row));
  }
  return rows_[static_cast<std::size_t>(row)];
}

Row& Rows::used(std::int32_t row) {
  Row& found = slot(row);
  if (!found.used) refuse("row " + std::to_string(row) + " holds no request");
  return found;
}

Row* Rows::find(std::int32_t row, std::uint64_t generation) {
  Row& found = slot(row);
  return found.used && found.generation == generation ? &found : nullptr;
}

void Rows::add(std::int32_t row, std::span<const std::int32_t> tokens, const Sampling& sampling,
               std::int64_t num_prompt) {
  Row& target = slot(row);
  if (target.used) refuse("row " + std::to_string(row) + " already holds a request; remove it first");
  const auto size = static_cast<std::int64_t>(tokens.size());
  if (size < 1 || size > max_len_) {
    refuse("a request must have 1.." + std::to_string(max_len_) + " tokens, not " + std::to_string(size));
  }
  if (num_prompt < 1 || num_prompt > size) {
    refuse("num_prompt_tokens must lie in 1.." + std::to_string(size) + ", not " + std::to_string(num_prompt));
  }
  const auto require_id = [&](std::int64_t id) {
    if (id < 0 || id >= vocab_size_) {
      refuse("token id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(vocab_size_));
    }
  };
  for (const std::int32_t id : tokens) require_id(id);
  validate(sampling);
  for (const auto& [id, bias] : sampling.logit_bias) require_id(id);
  target = {.used = true,
            .generation = target.generation + 1,
            .tokens = {tokens.begin(), tokens.end()},
            .num_prompt = num_prompt,
            .given = size,
            .sampling = sampling,
            .blocks = {}};
}

void Rows::remove(std::int32_t row) {
  Row& target = used(row);
  target = {.used = false,
            .generation = target.generation,
            .tokens = {},
            .num_prompt = 0,
            .given = 0,
            .sampling = {},
            .blocks = {}};
}

void Rows::require_block(std::int32_t block) const {
  if (block < 0 || block >= num_blocks_) {
    refuse("block must lie in 0.." + std::to_string(num_blocks_ - 1) + ", not " + std::to_string(block));
  }
}

void Rows::set_blocks(std::int32_t row, std::int64_t first, std::span<const std::int32_t> blocks) {
  Row& target = used(row);
  const auto known = static_cast<std::int64_t>(target.blocks.size());
  if (first < 0 || first > known) {
    refuse("blocks must follow the row's " + std::to_string(known) + " known ones, not start at " +
           std::to_string(first));
  }
  for (const std::int32_t block : blocks) require_block(block);
  const auto end = static_cast<std::size_t>(first) + blocks.size();
  if (end > target.blocks.size()) target.blocks.resize(end);
  std::copy(blocks.begin(), blocks.end(), target.blocks.begin() + first);
}

}  // namespace runner

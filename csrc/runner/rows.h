// The persistent batch: what each slot knows of its request from `add` until `remove`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runner/sampling.h"

namespace runner {

// A token that the device has sampled and the host hasn't seen yet.
constexpr std::int32_t kPending = -1;

struct Row {
  bool used = false;
  std::uint64_t generation = 0;  // tells a slot's requests apart
  std::vector<std::int32_t> tokens;
  std::int64_t num_prompt = 0;
  std::int64_t given = 0;  // tokens that `add` brought
  Sampling sampling;
  std::vector<std::int32_t> blocks;

  std::int64_t size() const { return static_cast<std::int64_t>(tokens.size()); }
};

class Rows {
 public:
  Rows(std::int32_t count, std::int64_t vocab_size, std::int64_t max_len, std::int32_t num_blocks);

  // All throw BadArgument.
  void add(std::int32_t row, std::span<const std::int32_t> tokens, const Sampling& sampling, std::int64_t num_prompt);
  void remove(std::int32_t row);
  void set_blocks(std::int32_t row, std::int64_t first, std::span<const std::int32_t> blocks);
  Row& used(std::int32_t row);
  // The row if it still holds that request, else null.
  Row* find(std::int32_t row, std::uint64_t generation);

  std::int32_t count() const { return static_cast<std::int32_t>(rows_.size()); }
  void require_block(std::int32_t block) const;

 private:
  Row& slot(std::int32_t row);

  std::vector<Row> rows_;
  std::int64_t vocab_size_;
  std::int64_t max_len_;
  std::int32_t num_blocks_;
};

}  // namespace runner

// What penalties need to know of every row, on the device: tokens of its prompt, and how often each was put out.
#pragma once

#include <span>

#include "model/model.h"
#include "runner/rows.h"

namespace runner {

class PenaltyTables {
 public:
  PenaltyTables(const model::Model& model, std::int32_t max_num_seqs) : model_(model), max_num_seqs_(max_num_seqs) {}

  // Writes the row's tables; the memory comes with the first such row.
  void set(vt::Queue* queue, std::int32_t row, const Row& request);

  const std::uint32_t* prompt_mask() const { return prompt_mask_.as<const std::uint32_t>(); }
  std::int32_t* output_counts() const { return output_counts_.as<std::int32_t>(); }

 private:
  const model::Model& model_;
  std::int32_t max_num_seqs_;
  vt::Buffer prompt_mask_;    // (max_num_seqs, ceil(vocab / 32)) uint32
  vt::Buffer output_counts_;  // (max_num_seqs, vocab) int32
};

}  // namespace runner

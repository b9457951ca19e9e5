// From hidden states to tokens and log-probabilities, on the device.
#pragma once

#include <span>
#include <vector>

#include "model/forward.h"
#include "runner/penalties.h"
#include "runner/plan.h"
#include "runner/staging.h"

namespace runner {

// Where a step's results lie in its output buffer; N lines that sampled, P prompt positions.
struct OutputLayout {
  std::int64_t lines = 0;  // N
  std::int32_t num_top = 0;
  std::int64_t prompt_positions = 0;  // P

  std::size_t token_ids() const { return 0; }                                                // (N) int64
  std::size_t logprobs() const { return size(lines, 8); }                                    // (N) float
  std::size_t top_ids() const { return logprobs() + size(lines, 4); }                        // (N, num_top) int32
  std::size_t top_logprobs() const { return top_ids() + size(lines * num_top, 4); }          // (N, num_top) float
  std::size_t prompt_logprobs() const { return top_logprobs() + size(lines * num_top, 4); }  // (P) float
  std::size_t prompt_ids() const { return prompt_logprobs() + size(prompt_positions, 4); }   // (P, 2) int32
  std::size_t prompt_best() const { return prompt_ids() + size(2 * prompt_positions, 4); }   // (P, 2) float
  std::size_t bytes() const { return prompt_best() + size(2 * prompt_positions, 4); }

 private:
  static std::size_t size(std::int64_t count, std::size_t width) {
    return (static_cast<std::size_t>(count) * width + 63) / 64 * 64;
  }
};

OutputLayout output_layout(const Plan& plan, Rows& rows);

class Sampler {
 public:
  Sampler(const model::Model& model, model::Forward& forward, PenaltyTables& penalties, std::int64_t logit_rows)
      : model_(model), forward_(forward), penalties_(penalties), logit_rows_(logit_rows) {}

  struct Step {
    const Plan& plan;
    const Scheduled& scheduled;
    const OutputLayout& layout;
    Staging& staging;
    vt::Buffer& staged;  // the device's copy of staging
    vt::Buffer& output;
    vt::Tensor logits;  // (at least N, vocab) where the step has them already, else empty
  };

  // Writes the results and returns the device's row of each line, for the mirror.
  const std::int32_t* run(vt::Queue* queue, Rows& rows, const Step& step);

 private:
  struct Offsets;

  Offsets stage(Rows& rows, const Step& step);
  void stage_processors(Rows& rows, const Step& step, Offsets& offsets);
  vt::Tensor process(vt::Queue* queue, const vt::Tensor& logits, const Step& step, const Offsets& offsets);
  void sample(vt::Queue* queue, const vt::Tensor& logits, const Step& step, const Offsets& offsets);
  void score_prompts(vt::Queue* queue, const Step& step, const Offsets& offsets);

  const model::Model& model_;
  model::Forward& forward_;
  PenaltyTables& penalties_;
  std::int64_t logit_rows_;
  vt::Buffer processed_;  // (lines, vocab) F32, made when first needed
};

}  // namespace runner

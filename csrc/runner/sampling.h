// How one request samples.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace runner {

constexpr std::int32_t kMaxTopLogprobs = 20;

struct Sampling {
  float temperature = 0.0f;  // 0: greedy
  std::int32_t top_k = 0;    // 0: off
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::uint64_t seed = 0;
  std::vector<std::pair<std::int32_t, float>> logit_bias;
  std::int32_t top_logprobs = 0;
  bool prompt_logprobs = false;

  bool penalised() const { return repetition_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f; }
};

// Throws BadArgument naming the first value out of its range.
void validate(const Sampling& sampling);

}  // namespace runner

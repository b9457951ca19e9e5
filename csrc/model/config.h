// Sizes and constants of a dense transformer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace model {

enum class RopeScaling : std::uint8_t { none, linear, llama3 };

struct Config {
  std::string architecture;  // one of `architectures()`
  std::int64_t num_layers;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
  std::int64_t num_heads;
  std::int64_t num_kv_heads;
  std::int64_t head_dim;
  std::int64_t vocab_size;
  std::int64_t context_length;
  float rms_norm_eps;
  float rope_theta;
  bool rope_interleaved;
  RopeScaling rope_scaling = RopeScaling::none;
  float rope_factor = 1.0f;
  float rope_low_freq_factor = 1.0f;
  float rope_high_freq_factor = 4.0f;
  float rope_original_context = 8192.0f;
};

// What sets one architecture apart from the next.
struct Architecture {
  std::string name;
  bool qkv_bias;
  bool qk_norm;
};

const std::vector<Architecture>& architectures();

// Throws Error naming those that there are.
const Architecture& architecture_named(const std::string& name);

// Throws BadArgument naming the first value that makes no sense.
void validate(const Config& config);

// (head_dim / 2) angles per position; `factors` (head_dim / 2) divides them, or is null.
std::vector<float> inverse_frequencies(const Config& config, const float* factors);

// (positions, head_dim): cosines, then sines.
std::vector<float> cos_sin_table(const std::vector<float>& frequencies, std::int64_t positions);

}  // namespace model

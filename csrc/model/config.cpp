// See config.h.
#include "model/config.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "vt/error.h"

namespace model {
namespace {

// Far above any real model, low enough that products of two of them fit into 64 bits.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 30;
constexpr std::int64_t kMaxLayers = 4096;

void require_size(const char* name, std::int64_t value, std::int64_t limit = kMaxSize) {
  if (value >= 1 && value <= limit) return;
  throw vt::BadArgument(std::string(name) + " must lie in 1.." + std::to_string(limit) + ", not " +
                        std::to_string(value));
}

void require_positive(const char* name, float value) {
  if (std::isfinite(value) && value > 0.0f) return;
  throw vt::BadArgument(std::string(name) + " must be a positive number, not " + std::to_string(value));
}

// Low frequencies are divided by the factor, high ones kept, those between mixed smoothly.
float llama3_scaled(const Config& config, float frequency) {
  const float wavelength = 2.0f * std::numbers::pi_v<float> / frequency;
  const float low = config.rope_original_context / config.rope_low_freq_factor;
  const float high = config.rope_original_context / config.rope_high_freq_factor;
  if (wavelength < high) return frequency;
  if (wavelength > low) return frequency / config.rope_factor;
  const float smooth = (config.rope_original_context / wavelength - config.rope_low_freq_factor) /
                       (config.rope_high_freq_factor - config.rope_low_freq_factor);
  return (1.0f - smooth) * frequency / config.rope_factor + smooth * frequency;
}

float scaled(const Config& config, float frequency) {
  switch (config.rope_scaling) {
    case RopeScaling::linear:
      return frequency / config.rope_factor;
    case RopeScaling::llama3:
      return llama3_scaled(config, frequency);
    case RopeScaling::none:
      break;
  }
  return frequency;
}

void validate_rope(const Config& config) {
  require_positive("rope_theta", config.rope_theta);
  require_positive("rope_scaling factor", config.rope_factor);
  if (config.rope_scaling != RopeScaling::llama3) return;
  require_positive("rope_scaling low_freq_factor", config.rope_low_freq_factor);
  require_positive("rope_scaling high_freq_factor", config.rope_high_freq_factor);
  require_positive("rope_scaling original_context_length", config.rope_original_context);
  if (config.rope_high_freq_factor <= config.rope_low_freq_factor) {
    throw vt::BadArgument("rope_scaling high_freq_factor must be larger than low_freq_factor");
  }
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all{
      {.name = "llama", .qkv_bias = false, .qk_norm = false},
      {.name = "qwen2", .qkv_bias = true, .qk_norm = false},
      {.name = "qwen3", .qkv_bias = false, .qk_norm = true},
  };
  return all;
}

const Architecture& architecture_named(const std::string& name) {
  std::string known;
  for (const Architecture& one : architectures()) {
    if (one.name == name) return one;
    known += (known.empty() ? "" : ", ") + one.name;
  }
  throw vt::Error("unsupported architecture '" + name + "'; there are " + known);
}

void validate(const Config& config) {
  architecture_named(config.architecture);
  for (const auto& [name, value] : std::array<std::pair<const char*, std::int64_t>, 7>{{
           {"hidden_size", config.hidden_size},
           {"intermediate_size", config.intermediate_size},
           {"num_heads", config.num_heads},
           {"num_kv_heads", config.num_kv_heads},
           {"head_dim", config.head_dim},
           {"vocab_size", config.vocab_size},
           {"context_length", config.context_length},
       }}) {
    require_size(name, value);
  }
  require_size("num_layers", config.num_layers, kMaxLayers);
  require_size("num_heads * head_dim", config.num_heads * config.head_dim);
  if (config.num_heads % config.num_kv_heads != 0) {
    throw vt::BadArgument("num_heads (" + std::to_string(config.num_heads) + ") must be a multiple of num_kv_heads (" +
                          std::to_string(config.num_kv_heads) + ")");
  }
  if (config.head_dim % 2 != 0) {
    throw vt::BadArgument("head_dim must be even, not " + std::to_string(config.head_dim));
  }
  require_positive("rms_norm_eps", config.rms_norm_eps);
  validate_rope(config);
}

std::vector<float> inverse_frequencies(const Config& config, const float* factors) {
  std::vector<float> frequencies(static_cast<std::size_t>(config.head_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    const float frequency = scaled(config, 1.0f / std::pow(config.rope_theta, exponent));
    frequencies[i] = factors ? frequency / factors[i] : frequency;
  }
  return frequencies;
}

std::vector<float> cos_sin_table(const std::vector<float>& frequencies, std::int64_t positions) {
  const std::size_t half = frequencies.size();
  std::vector<float> table(static_cast<std::size_t>(positions) * half * 2);
  for (std::int64_t position = 0; position < positions; ++position) {
    float* line = table.data() + static_cast<std::size_t>(position) * half * 2;
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      line[i] = std::cos(angle);
      line[half + i] = std::sin(angle);
    }
  }
  return table;
}

}  // namespace model

// Bias, allowed mask, repetition, presence and frequency penalties.
#include <algorithm>
#include <limits>

#include "device.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {
namespace {

bool bit(const std::uint32_t* mask, std::int64_t i) {
  return (mask[i / 32] >> (i % 32)) & 1u;
}

void add_biases(const vt::LogitsProcessorsArgs& args, std::int64_t line, float* out) {
  for (std::int32_t i = args.bias_start[line]; i < args.bias_start[line + 1]; ++i) {
    out[args.bias_ids[i]] += args.bias_values[i];
  }
}

void mask_out(const vt::LogitsProcessorsArgs& args, std::int64_t line, float* out) {
  const std::int64_t vocab = args.out.cols();
  const std::uint32_t* allowed = args.allowed + line * ((vocab + 31) / 32);
  for (std::int64_t id = 0; id < vocab; ++id) {
    if (!bit(allowed, id)) out[id] = -std::numeric_limits<float>::infinity();
  }
}

void penalise(const vt::LogitsProcessorsArgs& args, std::int64_t line, float* out) {
  const float repetition = args.repetition[line];
  const float presence = args.presence[line];
  const float frequency = args.frequency[line];
  if (repetition == 1.0f && presence == 0.0f && frequency == 0.0f) return;
  const std::int64_t vocab = args.out.cols();
  const std::int64_t row = args.idx_mapping[line];
  const std::uint32_t* prompt = args.prompt_mask + row * ((vocab + 31) / 32);
  const std::int32_t* counts = args.output_counts + row * vocab;
  for (std::int64_t id = 0; id < vocab; ++id) {
    const std::int32_t count = counts[id];
    if (count > 0 || bit(prompt, id)) out[id] = out[id] > 0.0f ? out[id] / repetition : out[id] * repetition;
    if (count > 0) out[id] -= presence + frequency * static_cast<float>(count);
  }
}

}  // namespace

void logits_processors(vt::Queue* queue, const vt::LogitsProcessorsArgs& args) {
  static vt::LaunchCounter counter("logits_processors");
  counter.add();
  pool_of(queue).each(args.out.rows(), [&](std::int64_t line) {
    float* out = args.out.row(line);
    if (args.out.data != args.logits.data) std::copy_n(args.logits.row<const float>(line), args.out.cols(), out);
    if (args.bias_start) add_biases(args, line, out);
    if (args.allowed) mask_out(args, line, out);
    if (args.repetition) penalise(args, line, out);
  });
}

}  // namespace cpu::reference

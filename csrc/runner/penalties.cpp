// See penalties.h.
#include "runner/penalties.h"

#include <vector>

namespace runner {

void PenaltyTables::set(vt::Queue* queue, std::int32_t row, const Row& request) {
  const vt::OpenDevice& device = model_.device();
  const auto vocab = static_cast<std::size_t>(model_.config().vocab_size);
  const std::size_t words = (vocab + 31) / 32;
  const auto rows = static_cast<std::size_t>(max_num_seqs_);
  if (!output_counts_.data()) {
    prompt_mask_ = vt::Buffer(device, rows * words * sizeof(std::uint32_t));
    output_counts_ = vt::Buffer(device, rows * vocab * sizeof(std::int32_t));
  }
  std::vector<std::uint32_t> mask(words);
  std::vector<std::int32_t> counts(vocab);
  for (std::int64_t i = 0; i < request.size(); ++i) {
    const auto id = static_cast<std::size_t>(request.tokens[static_cast<std::size_t>(i)]);
    if (i < request.num_prompt) {
      mask[id / 32] |= 1u << (id % 32);
    } else {
      ++counts[id];
    }
  }
  const auto slot = static_cast<std::size_t>(row);
  const vt::Platform& platform = device.platform();
  platform.copy(queue, prompt_mask_.as<std::uint32_t>() + slot * words, mask.data(), words * sizeof(std::uint32_t));
  platform.copy(queue, output_counts_.as<std::int32_t>() + slot * vocab, counts.data(), vocab * sizeof(std::int32_t));
  platform.synchronise(queue);
}

}  // namespace runner

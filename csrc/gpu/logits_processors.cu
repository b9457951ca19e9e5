// Bias, allowed mask, penalties; and counting what was sampled for the penalties of the next step.

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/view.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 256;

__device__ inline bool bit(const std::uint32_t* mask, int i) {
  return mask[i / 32] >> (i % 32) & 1u;
}

// One thread per logit.
__global__ void __launch_bounds__(kThreads) logits_processors_kernel(LogitsProcessorsArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int line = blockIdx.x;
  const int vocab = static_cast<int>(a.out.shape[1]), words = (vocab + 31) / 32;
  const int id = blockIdx.y * kThreads + threadIdx.x;
  if (id >= vocab) return;
  float value = row_at(a.logits, line)[id];
  if (a.bias_start) {
    for (int i = a.bias_start[line]; i < a.bias_start[line + 1]; ++i) {
      if (a.bias_ids[i] == id) value += a.bias_values[i];
    }
  }
  if (a.allowed && !bit(a.allowed + static_cast<std::int64_t>(line) * words, id)) value = -INFINITY;
  const std::int64_t row = a.idx_mapping[line];
  if (a.repetition && row >= 0) {
    const int count = a.output_counts[row * vocab + id];
    if (count > 0 || bit(a.prompt_mask + row * words, id)) {
      value = value > 0.0f ? value / a.repetition[line] : value * a.repetition[line];
    }
    if (count > 0) value -= a.presence[line] + a.frequency[line] * static_cast<float>(count);
  }
  row_at(a.out, line)[id] = value;
}

__global__ void __launch_bounds__(kThreads) count_tokens_kernel(CountTokensArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.count || a.idx_mapping[i] < 0) return;
  a.output_counts[a.idx_mapping[i] * a.vocab_size + a.token_ids[i]] += 1;
}

}  // namespace

void logits_processors(Queue* queue, const LogitsProcessorsArgs& args) {
  static LaunchCounter counter("logits_processors");
  if (args.out.size() == 0) return;
  launch(counter, queue,
         {dim3(static_cast<unsigned>(args.out.rows()), blocks_for(args.out.cols(), kThreads)), dim3(kThreads)},
         logits_processors_kernel, args);
}

void count_tokens(Queue* queue, const CountTokensArgs& args) {
  static LaunchCounter counter("count_tokens");
  if (args.count == 0) return;
  launch(counter, queue, {dim3(blocks_for(args.count, kThreads)), dim3(kThreads)}, count_tokens_kernel, args);
}

}  // namespace vt::gpu

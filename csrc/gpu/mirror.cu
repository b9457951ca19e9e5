// The async device mirror: the tokens that only the device knows yet.

#include "gpu/kernels.h"
#include "gpu/launch.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 128;

// One thread per request.
__global__ void __launch_bounds__(kThreads) combine_kernel(CombineArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int request = blockIdx.x * kThreads + threadIdx.x;
  if (request >= a.num_reqs) return;
  const int row = a.idx_mapping[request];
  if (row < 0 || a.seq_lens[request] <= a.prefill_len[row]) return;

  const int sampled = a.num_new_sampled_tokens;
  const int num_logits = a.cu_num_logits ? a.cu_num_logits[request + 1] - a.cu_num_logits[request] : sampled;
  const int query_end = a.query_start_loc[request + 1];
  const int first = query_end - num_logits;
  for (int i = 0; i < num_logits; ++i) {
    if (first + i < a.query_start_loc[request]) continue;
    if (i < sampled) {
      a.input_ids[first + i] = a.last_sampled_tokens[row * sampled + i];
    } else if (a.draft_tokens) {
      a.input_ids[first + i] = a.draft_tokens[row * a.draft_tokens_stride + i - sampled];
    }
  }
}

__global__ void __launch_bounds__(kThreads) scatter_last_sampled_kernel(ScatterLastSampledArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.count || a.idx_mapping[i] < 0) return;
  a.last_sampled_tokens[a.idx_mapping[i]] = static_cast<std::int32_t>(a.token_ids[i]);
}

// The changes build on one another, so one thread replays them.
__global__ void __launch_bounds__(1) apply_last_sampled_ops_kernel(ApplyLastSampledOpsArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  for (int i = 0; i < a.count; ++i) {
    const LastSampledOp op = a.ops[i];
    a.last_sampled_tokens[op.row] = op.source < 0 ? op.token : a.last_sampled_tokens[op.source];
  }
}

}  // namespace

void combine(Queue* queue, const CombineArgs& args) {
  static LaunchCounter counter("combine");
  if (args.num_reqs == 0) return;
  launch(counter, queue, {dim3(blocks_for(args.num_reqs, kThreads)), dim3(kThreads)}, combine_kernel, args);
}

void scatter_last_sampled(Queue* queue, const ScatterLastSampledArgs& args) {
  static LaunchCounter counter("scatter_last_sampled");
  if (args.count == 0) return;
  launch(counter, queue, {dim3(blocks_for(args.count, kThreads)), dim3(kThreads)}, scatter_last_sampled_kernel, args);
}

void apply_last_sampled_ops(Queue* queue, const ApplyLastSampledOpsArgs& args) {
  static LaunchCounter counter("apply_last_sampled_ops");
  if (args.count == 0) return;
  launch(counter, queue, {dim3(1), dim3(1)}, apply_last_sampled_ops_kernel, args);
}

}  // namespace vt::gpu

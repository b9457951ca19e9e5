// Log-probability of given tokens, and the best tokens with theirs, from raw logits.

#include <algorithm>

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/tile.h"
#include "gpu/view.h"
#include "gpu/workspace.h"
#include "vt/error.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 512;
constexpr int kMaxParts = 16;  // blocks that share a row of logits
constexpr int kMaxTop = 64;
constexpr int kNoToken = 0x7fffffff;

struct Part {
  float maximum;
  float sum;  // of exp(logit - maximum)
};

struct Parameters {
  LogprobsArgs a;
  Part* parts;             // (N, parts)
  Candidate* best;         // (N, parts, num_top)
  unsigned int* arrivals;  // (N)
};

// The candidate that follows `after` in the ranking, among those that `next(i)` lists for this thread.
template <typename List>
__device__ Candidate next_best(Candidate after, int count, List list) {
  Candidate best{-INFINITY, kNoToken};
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const Candidate candidate = list(i);
    if (ranks_before(after, candidate) && ranks_before(candidate, best)) best = candidate;
  }
  return block_best<kThreads>(best);
}

__device__ Part summarise(const float* logits, int vocab, int part, int parts, float maximum) {
  float sum = 0.0f;
  for (int id = part * kThreads + threadIdx.x; id < vocab; id += kThreads * parts) sum += expf(logits[id] - maximum);
  return {maximum, block_sum<kThreads>(sum)};
}

__global__ void __launch_bounds__(kThreads) logprobs_kernel(Parameters p) {
  __shared__ bool is_last;
  __shared__ float log_total;
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const LogprobsArgs& a = p.a;
  const int line = blockIdx.x, part = blockIdx.y, parts = gridDim.y;
  const int vocab = static_cast<int>(a.logits.shape[1]);
  const float* logits = row_at(a.logits, line);
  const int strides = (vocab + kThreads * parts - 1) / (kThreads * parts);
  Candidate* best = p.best + static_cast<std::int64_t>(line) * parts * a.num_top;

  Candidate last{INFINITY, -1};
  float maximum = -INFINITY;
  for (int top = 0; top < a.num_top; ++top) {
    // Element i of thread t is token (i / kThreads * parts + part) * kThreads + t.
    last = next_best(last, strides * kThreads, [&](int i) {
      const int id = (i / kThreads * parts + part) * kThreads + i % kThreads;
      return id < vocab ? Candidate{logits[id], id} : Candidate{-INFINITY, kNoToken};
    });
    if (top == 0) maximum = last.logit;
    if (threadIdx.x == 0) best[part * a.num_top + top] = last;
  }
  const Part mine = summarise(logits, vocab, part, parts, maximum == -INFINITY ? 0.0f : maximum);
  if (threadIdx.x == 0) p.parts[line * parts + part] = mine;

  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(p.arrivals + line, 1u) == static_cast<unsigned int>(parts - 1);
    if (is_last) p.arrivals[line] = 0u;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();

  if (threadIdx.x == 0) {
    const volatile Part* found = p.parts + line * parts;
    float top = -INFINITY;
    for (int i = 0; i < parts; ++i) top = fmaxf(top, found[i].maximum);
    float sum = 0.0f;
    for (int i = 0; i < parts; ++i) sum += found[i].sum * expf(found[i].maximum - top);
    log_total = top + logf(sum);
    const std::int64_t token = a.token_ids[line];
    a.logprobs[line] = token >= 0 && token < vocab ? logits[token] - log_total : -INFINITY;
  }
  __syncthreads();
  const volatile Candidate* candidates = best;
  last = {INFINITY, -1};
  for (int top = 0; top < a.num_top; ++top) {
    last = next_best(last, parts * a.num_top, [&](int i) { return Candidate{candidates[i].logit, candidates[i].id}; });
    if (threadIdx.x != 0) continue;
    const bool none = last.id == kNoToken;
    a.top_ids[line * a.num_top + top] = none ? -1 : last.id;
    a.top_logprobs[line * a.num_top + top] = none ? -INFINITY : last.logit - log_total;
  }
}

}  // namespace

void logprobs(Queue* queue, const LogprobsArgs& args) {
  static LaunchCounter counter("logprobs");
  const auto lines = static_cast<unsigned>(args.logits.rows());
  if (lines == 0) return;
  if (args.num_top > kMaxTop) throw Error("logprobs lists at most " + std::to_string(kMaxTop) + " tokens");
  const unsigned parts = std::min<unsigned>(kMaxParts, blocks_for(args.logits.cols(), 2 * kThreads));
  const std::size_t part_bytes = (lines * parts * sizeof(Part) + 15) / 16 * 16;
  auto* memory = static_cast<char*>(
      workspace(queue, part_bytes + lines * parts * static_cast<std::size_t>(args.num_top) * sizeof(Candidate)));
  launch(counter, queue, {dim3(lines, parts), dim3(kThreads)}, logprobs_kernel,
         Parameters{args, reinterpret_cast<Part*>(memory), reinterpret_cast<Candidate*>(memory + part_bytes),
                    of(queue).arrivals});
}

}  // namespace vt::gpu

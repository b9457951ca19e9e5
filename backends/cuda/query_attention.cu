// Attention of one query per request over the paged cache on tensor cores, BF16: a block takes the query heads of one
// KV head and a split of the context, a warp every fourth 16 tokens of it. The last block of a request's head to end
// folds the splits in order. Keys and values of earlier steps are asked for before the predecessor ends.

#include <algorithm>

#include "attention.h"
#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/view.h"
#include "tensor_core.h"

namespace vt::gpu::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kKeys = 64;  // per step
constexpr int kStages = 3;
constexpr int kMaxSplits = 16;
constexpr int kMaxGroup = 8;  // query heads of a KV head: rows of a fragment
constexpr float kLowest = -1.0e30f;

struct Parameters {
  AttentionArgs a;
  float* partial;          // (R, heads, kMaxSplits, dim + 2): maximum, sum, values
  unsigned int* arrivals;  // (R, kv_heads), zero between launches
  int group;
};

// Where a block's part of a request's context lies.
struct Part {
  const std::int32_t* blocks;
  int kv_head;
  int first;
  int end;
};

// Keys, then values of kKeys tokens into shared memory; zeros past the end.
template <int kDim>
__device__ void fetch(std::uint32_t to, const KvCache& cache, const Part& part, int step) {
  constexpr int kPieces = kDim / 8, kTileBytes = kKeys * kDim * 2;
  const int block_size = static_cast<int>(cache.keys.shape[2]);
#pragma unroll
  for (int i = 0; i < kKeys * kPieces / kThreads; ++i) {
    const int row = (threadIdx.x + i * kThreads) / kPieces, piece = threadIdx.x % kPieces;
    const int position = part.first + step * kKeys + row;
    const bool valid = position < part.end;
    const std::int64_t block = part.blocks[valid ? position / block_size : 0];
    const std::int64_t from = block * cache.keys.stride[0] + part.kv_head * cache.keys.stride[1] +
                              (valid ? position % block_size : 0) * cache.keys.stride[2] + piece * 16;
    copy_async16(to + in_head_tile<kDim>(row, piece), static_cast<const char*>(cache.keys.data) + from, valid);
    copy_async16(to + kTileBytes + in_head_tile<kDim>(row, piece), static_cast<const char*>(cache.values.data) + from,
                 valid);
  }
}

// Running softmax of a warp: lane l has head l / 4, and of its values the pairs l % 4 of every eight dims.
template <int kDim>
struct Running {
  float best = kLowest;
  float sum = 0.0f;
  float out[kDim / 8][4] = {};  // the last two of each are a fragment's unused rows
};

// The warp's 16 tokens of a step.
template <int kDim>
__device__ void attend(Running<kDim>& r, const std::uint32_t (&q)[kDim / 16][2], std::uint32_t keys, int tokens,
                       float scale) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16;
  const std::uint32_t values = keys + kKeys * kDim * 2;
  float scores[2][4] = {};
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    const std::uint32_t a[4] = {q[k][0], 0u, q[k][1], 0u};
    std::uint32_t b[4];
    load_matrices(b, keys + in_head_tile<kDim>(first + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
    multiply_add(scores[0], a, b[0], b[1]);
    multiply_add(scores[1], a, b[2], b[3]);
  }
  float highest = r.best;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      scores[c][i] = c * 8 + lane % 4 * 2 + i < tokens ? scores[c][i] * scale : kLowest;
      highest = fmaxf(highest, scores[c][i]);
    }
  }
  highest = fmaxf(highest, vendor::shuffle_xor(highest, 1));
  highest = fmaxf(highest, vendor::shuffle_xor(highest, 2));
  const float keep = exp2f(r.best - highest);
  r.best = highest;
  r.sum *= keep;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      scores[c][i] = exp2f(scores[c][i] - highest);
      r.sum += scores[c][i];
    }
  }
  const std::uint32_t p[4] = {pack_bfloat16(scores[0][0], scores[0][1]), 0u, pack_bfloat16(scores[1][0], scores[1][1]),
                              0u};
#pragma unroll
  for (int d = 0; d < kDim / 8; d += 2) {
    std::uint32_t v[4];
    load_matrices_transposed(v, values + in_head_tile<kDim>(first + lane % 16, d + lane / 16));
    for (int i = 0; i < 2; ++i) r.out[d][i] *= keep, r.out[d + 1][i] *= keep;
    multiply_add(r.out[d], p, v[0], v[1]);
    multiply_add(r.out[d + 1], p, v[2], v[3]);
  }
}

struct WarpSums {
  float best[kWarps][kMaxGroup];
  float sum[kWarps][kMaxGroup];
  bool is_last;
};

// Value d of head g, not divided by the sum yet, from what the warps left; and the head's maximum and sum.
template <int kDim>
__device__ float merge_warps(const WarpSums& s, const float* values, int g, int d, float& best, float& sum) {
  best = kLowest, sum = 0.0f;
  for (int w = 0; w < kWarps; ++w) best = fmaxf(best, s.best[w][g]);
  float value = 0.0f;
  for (int w = 0; w < kWarps; ++w) {
    const float weight = exp2f(s.best[w][g] - best);
    sum = fmaf(s.sum[w][g], weight, sum);
    value = fmaf(values[(w * kMaxGroup + g) * kDim + d], weight, value);
  }
  return value;
}

template <int kDim>
__device__ void fold_splits(const Parameters& p, const float* slots, int splits, int token, int first_head) {
  for (int i = threadIdx.x; i < p.group * kDim; i += kThreads) {
    const int g = i / kDim, d = i % kDim;
    float best = kLowest, sum = 0.0f, value = 0.0f;
    for (int split = 0; split < splits; ++split) {
      const float* slot = slots + (g * kMaxSplits + split) * (kDim + 2);
      const float split_best = __ldcg(slot), highest = fmaxf(best, split_best);
      const float keep = exp2f(best - highest), weight = exp2f(split_best - highest);
      sum = fmaf(__ldcg(slot + 1), weight, sum * keep);
      value = fmaf(__ldcg(slot + 2 + d), weight, value * keep);
      best = highest;
    }
    store(row_at<BFloat16>(p.a.out, token, first_head + g) + d, value / sum);
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads) query_attention_kernel(Parameters p) {
  constexpr int kStageBytes = 2 * kKeys * kDim * 2;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ WarpSums s;
  vendor::let_successor_start();
  const AttentionArgs& a = p.a;
  // The host wrote these arrays before the step's first kernel: they may be read before the predecessor ends.
  const int request = blockIdx.x, kv_head = blockIdx.y, context = a.seq_lens[request];
  const int all_steps = (context + kKeys - 1) / kKeys;
  const int split_steps = (all_steps + gridDim.z - 1) / gridDim.z;
  const int splits = context == 0 ? 0 : (all_steps + split_steps - 1) / split_steps;
  const int split = blockIdx.z;
  if (split >= splits) return;
  const Part part{a.block_table + static_cast<std::int64_t>(request) * a.block_table_stride, kv_head,
                  split * split_steps * kKeys, min((split + 1) * split_steps * kKeys, context)};
  const int steps = (part.end - part.first + kKeys - 1) / kKeys;
  const std::uint32_t ring = shared_address(shared);

  bool waited = false;
  for (int step = 0; step < kStages; ++step) {
    // The predecessor writes the newest token.
    if (!waited && part.first + (step + 1) * kKeys >= context) vendor::wait_for_predecessor(), waited = true;
    if (step < steps) fetch<kDim>(ring + step * kStageBytes, a.cache, part, step);
    commit_copies();
  }
  if (!waited) vendor::wait_for_predecessor();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int token = a.query_start_loc[request], first_head = kv_head * p.group;
  std::uint32_t q[kDim / 16][2];
  const bool has_head = lane / 4 < p.group;
  const auto* query =
      reinterpret_cast<const std::uint32_t*>(row_at<BFloat16>(a.q, token, first_head + (has_head ? lane / 4 : 0)));
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    q[k][0] = has_head ? query[k * 8 + lane % 4] : 0u;
    q[k][1] = has_head ? query[k * 8 + 4 + lane % 4] : 0u;
  }

  Running<kDim> running;
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 1>();
    __syncthreads();
    const int tokens = part.end - part.first - step * kKeys - warp * 16;
    const std::uint32_t stage = ring + step % kStages * kStageBytes;
    if (tokens > 0) attend<kDim>(running, q, stage, tokens, a.scale * 1.44269504f);
    __syncthreads();
    if (step + kStages < steps) fetch<kDim>(stage, a.cache, part, step + kStages);
    commit_copies();
  }
  wait_copies<0>();
  __syncthreads();

  running.sum += vendor::shuffle_xor(running.sum, 1);
  running.sum += vendor::shuffle_xor(running.sum, 2);
  float* values = reinterpret_cast<float*>(shared);  // (kWarps, kMaxGroup, kDim)
  if (lane % 4 == 0) s.best[warp][lane / 4] = running.best, s.sum[warp][lane / 4] = running.sum;
#pragma unroll
  for (int d = 0; d < kDim / 8; ++d) {
    float* to = values + (warp * kMaxGroup + lane / 4) * kDim + d * 8 + lane % 4 * 2;
    to[0] = running.out[d][0], to[1] = running.out[d][1];
  }
  __syncthreads();

  float* slots = p.partial + (static_cast<std::int64_t>(request) * a.q.shape[1] + first_head) * kMaxSplits * (kDim + 2);
  for (int i = threadIdx.x; i < p.group * kDim; i += kThreads) {
    const int g = i / kDim, d = i % kDim;
    float best, sum;
    const float value = merge_warps<kDim>(s, values, g, d, best, sum);
    if (splits == 1) {
      store(row_at<BFloat16>(a.out, token, first_head + g) + d, value / sum);
    } else {
      float* slot = slots + (g * kMaxSplits + split) * (kDim + 2);
      slot[2 + d] = value;
      if (d == 0) slot[0] = best, slot[1] = sum;
    }
  }
  if (splits == 1) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned int* arrived = p.arrivals + request * gridDim.y + kv_head;
    s.is_last = atomicAdd(arrived, 1u) == static_cast<unsigned int>(splits - 1);
    if (s.is_last) *arrived = 0u;
  }
  __syncthreads();
  if (!s.is_last) return;
  __threadfence();
  fold_splits<kDim>(p, slots, splits, token, first_head);
}

template <int kDim>
void launch_queries(Queue* queue, const Parameters& p) {
  static LaunchCounter counter("query_attention");
  constexpr unsigned kShared = kStages * 2 * kKeys * kDim * 2;
  static const bool raised = (vendor::allow_shared(query_attention_kernel<kDim>, kShared), true);
  (void)raised;
  const auto requests = static_cast<unsigned>(p.a.num_reqs);
  const auto kv_heads = static_cast<unsigned>(p.a.cache.keys.shape[1]);
  // As many splits as give every multiprocessor two blocks.
  const unsigned wanted = 2 * of(queue).device->properties.multiprocessors / (requests * kv_heads);
  const unsigned splits = std::clamp(std::min(wanted, blocks_for(p.a.max_seq_len, kKeys)), 1u, unsigned{kMaxSplits});
  launch(counter, queue, {dim3(requests, kv_heads, splits), dim3(kThreads), kShared}, query_attention_kernel<kDim>, p);
}

}  // namespace

bool serves_queries(const AttentionArgs& args) {
  const std::int64_t kv_heads = args.cache.keys.shape[1];
  return args.q.shape[1] / kv_heads <= kMaxGroup && args.num_reqs * kv_heads <= kMaxArrivals;
}

void query_attention(Queue* queue, const AttentionArgs& args) {
  const Parameters p{args, static_cast<float*>(args.workspace), of(queue).arrivals,
                     static_cast<int>(args.q.shape[1] / args.cache.keys.shape[1])};
  if (args.q.shape[2] == 128) return launch_queries<128>(queue, p);
  launch_queries<64>(queue, p);
}

}  // namespace vt::gpu::cuda

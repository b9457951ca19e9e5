// Paged attention, the same for prefill and decode: one block per token, KV head and split of the context.
//
// A token's context is cut into at most kMaxSplits splits whose size depends on its length alone, and the splits are
// folded in order, whether one block walks through all of them or the last of several blocks to end folds what they
// left in the workspace. So a token's result depends neither on the other requests nor on how its prompt was chunked.

#include <algorithm>

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/tile.h"
#include "gpu/view.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 128;
constexpr int kTokens = 64;  // of the context, per step
constexpr int kMaxSplits = 16;
constexpr int kMaxDim = 256;
constexpr int kTokenLanes = 8;  // lanes that share one key
constexpr int kMaxGroup = 8;    // query heads of one KV head that a block serves
constexpr float kLowest = -3.0e38f;

struct Parameters {
  AttentionArgs a;
  float* partial;          // (T, heads, kMaxSplits, dim + 2): maximum, sum, values
  unsigned int* arrivals;  // (T, blockIdx.y), zero between launches
  int group;               // query heads of a KV head that a block serves
  int group_parts;         // blocks that share a KV head
};

struct Query {
  int token;  // negative: nothing to do
  int request;
  int context;  // tokens that it may see
};

__device__ Query find_query(const AttentionArgs& a, int index) {
  int request = index;
  if (a.max_query_len > 1) {
    int low = 0, high = a.num_reqs - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (a.query_start_loc[middle] <= index) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    request = low;
  }
  const int start = a.query_start_loc[request], end = a.query_start_loc[request + 1];
  const int token = a.max_query_len > 1 ? index : start;
  const int seq_len = a.seq_lens[request];
  if (seq_len == 0 || token >= end) return {-1, 0, 0};
  return {token, request, seq_len - (end - token) + 1};
}

template <int kGroup>
struct Shared {
  float q[kGroup][kMaxDim];
  float scores[kGroup][kTokens];
  float rescale[kGroup];
  float maximum[kGroup];
  float sum[kGroup];
  float reduce[kGroup][kThreads][8];
  float keep[kGroup][kMaxSplits];    // factor of what was folded before
  float weight[kGroup][kMaxSplits];  // factor of the split
  std::int64_t offset[kTokens];      // bytes from the cache's start to each token of the step
  bool is_last;
};

// Where the tokens of a step lie, for keys and values alike.
template <int kGroup>
__device__ void locate_tokens(Shared<kGroup>& s, const AttentionArgs& a, int request, int kv_head, int first, int end) {
  const Tensor& cache = a.cache.keys;
  const int block_size = static_cast<int>(cache.shape[2]);
  for (int t = threadIdx.x; t < kTokens; t += kThreads) {
    const int position = min(first + t, end - 1);
    const std::int64_t block =
        a.block_table[static_cast<std::int64_t>(request) * a.block_table_stride + position / block_size];
    s.offset[t] = block * cache.stride[0] + kv_head * cache.stride[1] + position % block_size * cache.stride[2];
  }
}

// Eight numbers of the cache as they lie in memory.
template <typename C>
struct Raw8 {
  uint4 words[sizeof(C) / 2];
};
template <typename C>
__device__ Raw8<C> load_raw(const Tensor& cache, std::int64_t offset, int chunk) {
  Raw8<C> raw;
  const auto* from =
      reinterpret_cast<const uint4*>(static_cast<const char*>(cache.data) + offset + chunk * 8 * sizeof(C));
  for (int i = 0; i < static_cast<int>(sizeof(C) / 2); ++i) raw.words[i] = from[i];
  return raw;
}
template <typename C>
__device__ void expand(const Raw8<C>& raw, float (&out)[8]) {
  if constexpr (sizeof(C) == 4) {
    load8(reinterpret_cast<const float*>(raw.words), out);
  } else {
    unpack(static_cast<const C*>(nullptr), raw.words[0], out);
  }
}

// What a thread reads in one step: keys of kKeyTokens tokens (its lane's chunks), values of kValueTokens tokens.
constexpr int kKeyTokens = kTokens * kTokenLanes / kThreads;
template <typename C, int kDimChunks>
struct Step {
  static constexpr int kValueTokens = 4 * kDimChunks;
  Raw8<C> keys[kKeyTokens][kDimChunks];
  Raw8<C> values[kValueTokens];
};

template <typename C, int kGroup, int kDimChunks>
__device__ void load_step(const Shared<kGroup>& s, const AttentionArgs& a, int dim, Step<C, kDimChunks>& step) {
  const int chunks = dim / 8, parts = kThreads / chunks, part = threadIdx.x / chunks;
#pragma unroll
  for (int j = 0; j < kKeyTokens; ++j) {
    const int t = threadIdx.x / kTokenLanes + j * (kThreads / kTokenLanes);
#pragma unroll
    for (int c = 0; c < kDimChunks; ++c) {
      const int chunk = threadIdx.x % kTokenLanes + c * kTokenLanes;
      if (chunk < chunks) step.keys[j][c] = load_raw<C>(a.cache.keys, s.offset[t], chunk);
    }
  }
#pragma unroll
  for (int j = 0; j < Step<C, kDimChunks>::kValueTokens; ++j) {
    const int t = part + j * parts;
    if (part < parts && t < kTokens) step.values[j] = load_raw<C>(a.cache.values, s.offset[t], threadIdx.x % chunks);
  }
}

template <typename C, int kGroup, int kDimChunks>
__device__ void score_tokens(Shared<kGroup>& s, const Step<C, kDimChunks>& step, int count, int dim) {
  const int sub = threadIdx.x % kTokenLanes;
#pragma unroll
  for (int j = 0; j < kKeyTokens; ++j) {
    const int t = threadIdx.x / kTokenLanes + j * (kThreads / kTokenLanes);
    float dots[kGroup] = {};
#pragma unroll
    for (int c = 0; c < kDimChunks; ++c) {
      const int chunk = sub + c * kTokenLanes;
      if (chunk >= dim / 8) continue;
      float values[8];
      expand<C>(step.keys[j][c], values);
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
#pragma unroll
        for (int i = 0; i < 8; ++i) dots[g] += s.q[g][8 * chunk + i] * values[i];
      }
    }
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      for (int mask = kTokenLanes / 2; mask > 0; mask /= 2) dots[g] += vendor::shuffle_xor(dots[g], mask);
      if (sub == 0) s.scores[g][t] = t < count ? dots[g] : kLowest;
    }
  }
}

// One tile per query head: new maximum and sum, scores become weights.
template <int kGroup>
__device__ void soften(Shared<kGroup>& s, int first, int end) {
  const int lane = threadIdx.x % kLanes;
  for (int g = threadIdx.x / kLanes; g < kGroup; g += kThreads / kLanes) {
    float best = s.maximum[g];
    for (int t = lane; t < kTokens; t += kLanes) best = fmaxf(best, s.scores[g][t]);
    best = tile_max(best);
    float sum = 0.0f;
    for (int t = lane; t < kTokens; t += kLanes) {
      const float weight = first + t < end ? expf(s.scores[g][t] - best) : 0.0f;
      s.scores[g][t] = weight;
      sum += weight;
    }
    sum = tile_sum(sum);
    if (lane != 0) continue;
    s.rescale[g] = expf(s.maximum[g] - best);
    s.sum[g] = fmaf(s.sum[g], s.rescale[g], sum);
    s.maximum[g] = best;
  }
}

template <typename C, int kGroup, int kDimChunks>
__device__ void add_values(const Shared<kGroup>& s, const Step<C, kDimChunks>& step, int count, int dim,
                           float (&values)[kGroup][8]) {
  const int parts = kThreads / (dim / 8), part = threadIdx.x / (dim / 8);
  if (part >= parts) return;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    for (int i = 0; i < 8; ++i) values[g][i] *= s.rescale[g];
  }
#pragma unroll
  for (int j = 0; j < Step<C, kDimChunks>::kValueTokens; ++j) {
    const int t = part + j * parts;
    if (t >= min(kTokens, count)) continue;
    float value[8];
    expand<C>(step.values[j], value);
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
#pragma unroll
      for (int i = 0; i < 8; ++i) values[g][i] = fmaf(s.scores[g][t], value[i], values[g][i]);
    }
  }
}

// The whole of one split; on return every thread may read s.maximum and s.sum. `located`: its first tokens are.
template <typename C, int kGroup, int kDimChunks>
__device__ void attend_split(Shared<kGroup>& s, const AttentionArgs& a, const Query& query, int kv_head, int first,
                             int end, int dim, bool located, float (&values)[kGroup][8]) {
  for (int g = 0; g < kGroup; ++g) {
    for (int i = 0; i < 8; ++i) values[g][i] = 0.0f;
  }
  __syncthreads();
  if (threadIdx.x < kGroup) s.maximum[threadIdx.x] = kLowest, s.sum[threadIdx.x] = 0.0f;
  for (int at = first; at < end; at += kTokens) {
    if (!located || at != first) locate_tokens<kGroup>(s, a, query.request, kv_head, at, end);
    __syncthreads();
    Step<C, kDimChunks> step;
    load_step<C, kGroup, kDimChunks>(s, a, dim, step);
    score_tokens<C, kGroup, kDimChunks>(s, step, end - at, dim);
    __syncthreads();
    soften<kGroup>(s, at, end);
    __syncthreads();
    add_values<C, kGroup, kDimChunks>(s, step, end - at, dim, values);
    __syncthreads();
  }
}

// Sum over the parts of the tokens that the threads hold: dims `threadIdx.x` and on, of each head.
template <int kGroup>
__device__ void reduce_parts(Shared<kGroup>& s, const float (&values)[kGroup][8], int dim, float (&out)[kGroup][2]) {
  const int chunks = dim / 8, parts = kThreads / chunks;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    for (int i = 0; i < 8; ++i) s.reduce[g][threadIdx.x][i] = values[g][i];
  }
  __syncthreads();
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    for (int half = 0; half < 2; ++half) {
      const int d = threadIdx.x + half * kThreads;
      out[g][half] = 0.0f;
      if (d >= dim) continue;
      for (int part = 0; part < parts; ++part) out[g][half] += s.reduce[g][part * chunks + d / 8][d % 8];
    }
  }
}

// How the running fold (maximum, sum) takes in a split: factors of both.
struct Factors {
  float keep, weight;
};
__device__ inline Factors fold_in(float& maximum, float& sum, float split_maximum, float split_sum) {
  const float best = fmaxf(maximum, split_maximum);
  const Factors factors{expf(maximum - best), expf(split_maximum - best)};
  sum = fmaf(split_sum, factors.weight, sum * factors.keep);
  maximum = best;
  return factors;
}

// Leaves the split in the workspace. True in the last block of the token to do so.
template <int kGroup>
__device__ bool leave_split(Shared<kGroup>& s, float* slots, unsigned int* arrived, int split, int splits, int heads,
                            int dim, const float (&part)[kGroup][2]) {
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    if (g >= heads) continue;
    float* slot = slots + (g * kMaxSplits + split) * (dim + 2);
    if (threadIdx.x == 0) slot[0] = s.maximum[g], slot[1] = s.sum[g];
    for (int half = 0; half < 2; ++half) {
      const int d = threadIdx.x + half * kThreads;
      if (d < dim) slot[2 + d] = part[g][half];
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    s.is_last = atomicAdd(arrived, 1u) == static_cast<unsigned int>(splits - 1);
    if (s.is_last) *arrived = 0u;
  }
  __syncthreads();
  if (s.is_last) __threadfence();
  return s.is_last;
}

// Folds what the blocks of a token left, in the order of the splits.
template <int kGroup>
__device__ void fold_splits(Shared<kGroup>& s, const float* slots, int splits, int heads, int dim,
                            float (&folded)[kGroup][2]) {
  if (static_cast<int>(threadIdx.x) < heads) {
    const int g = threadIdx.x;
    float maxima[kMaxSplits], sums[kMaxSplits];
#pragma unroll
    for (int i = 0; i < kMaxSplits; ++i) {
      const float* slot = slots + (g * kMaxSplits + min(i, splits - 1)) * (dim + 2);
      maxima[i] = vendor::load_fresh(slot), sums[i] = vendor::load_fresh(slot + 1);
    }
    float best = kLowest, total = 0.0f;
#pragma unroll
    for (int i = 0; i < kMaxSplits; ++i) {
      if (i >= splits) continue;
      const Factors f = fold_in(best, total, maxima[i], sums[i]);
      s.keep[g][i] = f.keep;
      s.weight[g][i] = f.weight;
    }
    s.sum[g] = total;
  }
  __syncthreads();
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    for (int half = 0; half < 2; ++half) {
      const int d = threadIdx.x + half * kThreads;
      if (g >= heads || d >= dim) continue;
      float parts[kMaxSplits];
#pragma unroll
      for (int i = 0; i < kMaxSplits; ++i) {
        parts[i] = vendor::load_fresh(slots + (g * kMaxSplits + min(i, splits - 1)) * (dim + 2) + 2 + d);
      }
#pragma unroll
      for (int i = 0; i < kMaxSplits; ++i) {
        if (i < splits) folded[g][half] = fmaf(parts[i], s.weight[g][i], folded[g][half] * s.keep[g][i]);
      }
    }
  }
}

template <typename X, typename C, int kGroup, int kDimChunks>
__global__ void __launch_bounds__(kThreads) paged_attention_kernel(Parameters p) {
  __shared__ Shared<kGroup> s;
  vendor::let_successor_start();
  const AttentionArgs& a = p.a;
  // The host wrote these arrays before the step's first kernel: they may be read before the predecessor ends.
  const Query query = find_query(a, blockIdx.x);
  if (query.token < 0) return;
  const int dim = static_cast<int>(a.q.shape[2]);
  const int kv_head = blockIdx.y / p.group_parts;
  const int heads_per_kv = static_cast<int>(a.q.shape[1] / a.cache.keys.shape[1]);
  const int first_head = kv_head * heads_per_kv + blockIdx.y % p.group_parts * kGroup;
  const int heads = min(kGroup, (kv_head + 1) * heads_per_kv - first_head);
  const int steps = (query.context + kTokens - 1) / kTokens;
  const int split_size = (steps + kMaxSplits - 1) / kMaxSplits * kTokens;
  const int splits = (query.context + split_size - 1) / split_size;
  const bool alone = gridDim.z == 1 || splits == 1;
  const int first_split = alone ? 0 : blockIdx.z, end_split = alone ? splits : first_split + 1;
  if (static_cast<int>(blockIdx.z) >= splits) return;
  locate_tokens<kGroup>(s, a, query.request, kv_head, first_split * split_size,
                        min((first_split + 1) * split_size, query.context));
  vendor::wait_for_predecessor();

  for (int i = threadIdx.x; i < kGroup * dim; i += kThreads) {
    const int g = i / dim, d = i % dim;
    s.q[g][d] = g < heads ? load(row_at<X>(a.q, query.token, first_head + g) + d) * a.scale : 0.0f;
  }
  float folded[kGroup][2] = {};
  float maximum[kGroup], sum[kGroup];
  for (int g = 0; g < kGroup; ++g) maximum[g] = kLowest, sum[g] = 0.0f;
  for (int split = first_split; split < end_split; ++split) {
    float values[kGroup][8], part[kGroup][2];
    attend_split<C, kGroup, kDimChunks>(s, a, query, kv_head, split * split_size,
                                        min((split + 1) * split_size, query.context), dim, split == first_split,
                                        values);
    reduce_parts<kGroup>(s, values, dim, part);
    if (!alone) {
      float* slots =
          p.partial + (static_cast<std::int64_t>(query.token) * a.q.shape[1] + first_head) * kMaxSplits * (dim + 2);
      unsigned int* arrived = p.arrivals + static_cast<std::int64_t>(query.token) * gridDim.y + blockIdx.y;
      if (!leave_split<kGroup>(s, slots, arrived, split, splits, heads, dim, part)) return;
      fold_splits<kGroup>(s, slots, splits, heads, dim, folded);
      for (int g = 0; g < kGroup; ++g) sum[g] = s.sum[g];
      continue;
    }
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      const Factors f = fold_in(maximum[g], sum[g], s.maximum[g], s.sum[g]);
      for (int half = 0; half < 2; ++half) folded[g][half] = fmaf(part[g][half], f.weight, folded[g][half] * f.keep);
    }
  }

#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    if (g >= heads) continue;
    X* out = row_at<X>(a.out, query.token, first_head + g);
    for (int half = 0; half < 2; ++half) {
      const int d = threadIdx.x + half * kThreads;
      if (d < dim) store(out + d, folded[g][half] / sum[g]);
    }
  }
}

template <typename X, typename C, int kGroup>
void launch_dim(LaunchCounter& counter, Queue* queue, const Shape& shape, const Parameters& p) {
  const std::int64_t dim = p.a.q.shape[2];
  if (dim <= 64) return launch(counter, queue, shape, paged_attention_kernel<X, C, kGroup, 1>, p);
  if (dim <= 128) return launch(counter, queue, shape, paged_attention_kernel<X, C, kGroup, 2>, p);
  launch(counter, queue, shape, paged_attention_kernel<X, C, kGroup, 4>, p);
}

template <typename X, typename C>
void launch_group(LaunchCounter& counter, Queue* queue, const Shape& shape, const Parameters& p) {
  if (p.group == 1) return launch_dim<X, C, 1>(counter, queue, shape, p);
  if (p.group == 2) return launch_dim<X, C, 2>(counter, queue, shape, p);
  if (p.group == 4) return launch_dim<X, C, 4>(counter, queue, shape, p);
  launch_dim<X, C, 8>(counter, queue, shape, p);
}

std::size_t partial_bytes(std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
  return static_cast<std::size_t>(tokens * heads * kMaxSplits * (dim + 2)) * sizeof(float);
}

}  // namespace

void paged_attention(Queue* queue, const AttentionArgs& args) {
  static LaunchCounter counter("paged_attention");
  if (args.q.rows() == 0 || args.num_reqs == 0) return;
  Parameters p{};
  p.a = args;
  const int heads_per_kv = static_cast<int>(args.q.shape[1] / args.cache.keys.shape[1]);
  p.group = 1;
  while (p.group < heads_per_kv && p.group < kMaxGroup) p.group *= 2;
  p.group_parts = (heads_per_kv + p.group - 1) / p.group;
  p.partial = static_cast<float*>(args.workspace);
  p.arrivals = of(queue).arrivals;
  const auto blocks_y = static_cast<unsigned>(args.cache.keys.shape[1] * p.group_parts);
  const bool decode = args.max_query_len == 1;
  const auto tokens = static_cast<unsigned>(decode ? args.num_reqs : args.q.rows());
  const bool in_splits = decode && args.max_seq_len > kTokens && tokens * blocks_y <= kMaxArrivals;
  const int steps = (args.max_seq_len + kTokens - 1) / kTokens;
  const unsigned splits = in_splits ? static_cast<unsigned>(std::min(steps, kMaxSplits)) : 1u;
  with_activation(args.q.dtype, "paged_attention", [&](auto* type) {
    with_type(args.cache.keys.dtype, "the KV cache", [&](auto* cached) {
      launch_group<std::remove_pointer_t<decltype(type)>, std::remove_pointer_t<decltype(cached)>>(
          counter, queue, {dim3(tokens, blocks_y, splits), dim3(kThreads)}, p);
    });
  });
}

std::string paged_attention_refuses(Device*, Precision, const AttentionShape& shape) {
  if (shape.head_dim % 8 != 0 || shape.head_dim > kMaxDim) {
    return "head_dim " + std::to_string(shape.head_dim) + " is not a multiple of 8 up to " + std::to_string(kMaxDim);
  }
  return {};
}

std::size_t paged_attention_workspace(Device*, const AttentionShape& shape) {
  return partial_bytes(shape.max_num_seqs, shape.heads, shape.head_dim);
}

}  // namespace vt::gpu

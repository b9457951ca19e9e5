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

// Softmax statistics and values of one split, spread over the block's threads.
template <int kGroup>
struct Fold {
  float maximum[kGroup];
  float sum[kGroup];
  float values[kGroup][8];  // of dims 8 * (thread % dim_chunks).., for this thread's part of the tokens
};

template <int kGroup>
struct Shared {
  float q[kGroup][kMaxDim];
  float scores[kGroup][kTokens];
  float rescale[kGroup];
  float maximum[kGroup];
  float sum[kGroup];
  float reduce[kThreads][8];
  float keep[kGroup][kMaxSplits];    // factor of what was folded before
  float weight[kGroup][kMaxSplits];  // factor of the split
  bool is_last;
};

template <typename T>
__device__ const T* cache_row(const Tensor& cache, const AttentionArgs& a, int request, int kv_head, int position) {
  const int block_size = static_cast<int>(cache.shape[2]);
  const std::int64_t block =
      a.block_table[static_cast<std::int64_t>(request) * a.block_table_stride + position / block_size];
  return reinterpret_cast<const T*>(static_cast<char*>(cache.data) + block * cache.stride[0] +
                                    kv_head * cache.stride[1] + position % block_size * cache.stride[2]);
}

template <typename C, int kGroup>
__device__ void score_tokens(Shared<kGroup>& s, const AttentionArgs& a, const Query& query, int kv_head, int first,
                             int end, int dim) {
  const int sub = threadIdx.x % kTokenLanes;
  for (int t = threadIdx.x / kTokenLanes; t < kTokens; t += kThreads / kTokenLanes) {
    const int position = min(first + t, end - 1);
    const C* key = cache_row<C>(a.cache.keys, a, query.request, kv_head, position);
    float dots[kGroup] = {};
    for (int c = sub; c < dim / 8; c += kTokenLanes) {
      float values[8];
      load8(key + 8 * c, values);
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
#pragma unroll
        for (int i = 0; i < 8; ++i) dots[g] += s.q[g][8 * c + i] * values[i];
      }
    }
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      for (int mask = kTokenLanes / 2; mask > 0; mask /= 2) dots[g] += vendor::shuffle_xor(dots[g], mask);
      if (sub == 0) s.scores[g][t] = first + t < end ? dots[g] : kLowest;
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

template <typename C, int kGroup>
__device__ void add_values(const Shared<kGroup>& s, const AttentionArgs& a, const Query& query, int kv_head, int first,
                           int end, int dim, float (&values)[kGroup][8]) {
  const int chunks = dim / 8;
  const int parts = kThreads / chunks;
  const int part = threadIdx.x / chunks;
  if (part >= parts) return;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    for (int i = 0; i < 8; ++i) values[g][i] *= s.rescale[g];
  }
  for (int t = part; t < min(kTokens, end - first); t += parts) {
    const C* row = cache_row<C>(a.cache.values, a, query.request, kv_head, first + t);
    float value[8];
    load8(row + 8 * (threadIdx.x % chunks), value);
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
#pragma unroll
      for (int i = 0; i < 8; ++i) values[g][i] = fmaf(s.scores[g][t], value[i], values[g][i]);
    }
  }
}

// The whole of one split; on return every thread may read s.maximum and s.sum.
template <typename C, int kGroup>
__device__ void attend_split(Shared<kGroup>& s, const AttentionArgs& a, const Query& query, int kv_head, int first,
                             int end, int dim, float (&values)[kGroup][8]) {
  for (int g = 0; g < kGroup; ++g) {
    for (int i = 0; i < 8; ++i) values[g][i] = 0.0f;
  }
  __syncthreads();
  if (threadIdx.x < kGroup) s.maximum[threadIdx.x] = kLowest, s.sum[threadIdx.x] = 0.0f;
  for (int step = first; step < end; step += kTokens) {
    __syncthreads();
    score_tokens<C, kGroup>(s, a, query, kv_head, step, end, dim);
    __syncthreads();
    soften<kGroup>(s, step, end);
    __syncthreads();
    add_values<C, kGroup>(s, a, query, kv_head, step, end, dim, values);
  }
  __syncthreads();
}

// Sum over the parts of the tokens that the threads hold; returns dim `threadIdx.x` (+ kThreads) of head g.
template <int kGroup>
__device__ void reduce_parts(Shared<kGroup>& s, const float (&values)[8], int dim, float (&out)[2]) {
  const int chunks = dim / 8, parts = kThreads / chunks;
  __syncthreads();
  for (int i = 0; i < 8; ++i) s.reduce[threadIdx.x][i] = values[i];
  __syncthreads();
  for (int half = 0; half < 2; ++half) {
    const int d = threadIdx.x + half * kThreads;
    out[half] = 0.0f;
    if (d >= dim) continue;
    for (int part = 0; part < parts; ++part) out[half] += s.reduce[part * chunks + d / 8][d % 8];
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

template <typename X, typename C, int kGroup>
__global__ void __launch_bounds__(kThreads) paged_attention_kernel(Parameters p) {
  __shared__ Shared<kGroup> s;
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const AttentionArgs& a = p.a;
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
  const bool alone = gridDim.z == 1;
  if (!alone && static_cast<int>(blockIdx.z) >= splits) return;

  for (int i = threadIdx.x; i < kGroup * dim; i += kThreads) {
    const int g = i / dim, d = i % dim;
    s.q[g][d] = g < heads ? load(row_at<X>(a.q, query.token, first_head + g) + d) * a.scale : 0.0f;
  }

  float values[kGroup][8];
  float folded[kGroup][2] = {};
  float maximum[kGroup], sum[kGroup];
  for (int g = 0; g < kGroup; ++g) maximum[g] = kLowest, sum[g] = 0.0f;
  if (alone) {
    for (int split = 0; split < splits; ++split) {
      attend_split<C, kGroup>(s, a, query, kv_head, split * split_size, min((split + 1) * split_size, query.context),
                              dim, values);
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        float part[2];
        reduce_parts<kGroup>(s, values[g], dim, part);
        const Factors f = fold_in(maximum[g], sum[g], s.maximum[g], s.sum[g]);
        for (int half = 0; half < 2; ++half) folded[g][half] = fmaf(part[half], f.weight, folded[g][half] * f.keep);
      }
    }
  } else {
    const int split = blockIdx.z;
    attend_split<C, kGroup>(s, a, query, kv_head, split * split_size, min((split + 1) * split_size, query.context), dim,
                            values);
    float* slots =
        p.partial + (static_cast<std::int64_t>(query.token) * a.q.shape[1] + first_head) * kMaxSplits * (dim + 2);
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      float part[2];
      reduce_parts<kGroup>(s, values[g], dim, part);
      if (g >= heads) continue;
      float* slot = slots + (g * kMaxSplits + split) * (dim + 2);
      if (threadIdx.x == 0) slot[0] = s.maximum[g], slot[1] = s.sum[g];
      for (int half = 0; half < 2; ++half) {
        const int d = threadIdx.x + half * kThreads;
        if (d < dim) slot[2 + d] = part[half];
      }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned int* arrived = p.arrivals + static_cast<std::int64_t>(query.token) * gridDim.y + blockIdx.y;
      s.is_last = atomicAdd(arrived, 1u) == static_cast<unsigned int>(splits - 1);
      if (s.is_last) *arrived = 0u;
    }
    __syncthreads();
    if (!s.is_last) return;
    __threadfence();
    const volatile float* read = slots;
    if (static_cast<int>(threadIdx.x) < heads) {
      const int g = threadIdx.x;
      float best = kLowest, total = 0.0f;
      for (int i = 0; i < splits; ++i) {
        const std::int64_t at = (g * kMaxSplits + i) * (dim + 2);
        const Factors f = fold_in(best, total, read[at], read[at + 1]);
        s.keep[g][i] = f.keep;
        s.weight[g][i] = f.weight;
      }
      s.sum[g] = total;
    }
    __syncthreads();
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      if (g >= heads) continue;
      sum[g] = s.sum[g];
      for (int half = 0; half < 2; ++half) {
        const int d = threadIdx.x + half * kThreads;
        if (d >= dim) continue;
        for (int i = 0; i < splits; ++i) {
          const float part = read[(g * kMaxSplits + i) * (dim + 2) + 2 + d];
          folded[g][half] = fmaf(part, s.weight[g][i], folded[g][half] * s.keep[g][i]);
        }
      }
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

template <typename X, typename C>
void launch_group(LaunchCounter& counter, Queue* queue, const Shape& shape, const Parameters& p) {
  if (p.group == 1) return launch(counter, queue, shape, paged_attention_kernel<X, C, 1>, p);
  if (p.group == 2) return launch(counter, queue, shape, paged_attention_kernel<X, C, 2>, p);
  if (p.group == 4) return launch(counter, queue, shape, paged_attention_kernel<X, C, 4>, p);
  launch(counter, queue, shape, paged_attention_kernel<X, C, 8>, p);
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

// Rotary embedding, alone or fused with the norm of each head and the write of keys and values into the paged cache.

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/tile.h"
#include "gpu/view.h"

namespace vt::gpu {
namespace {

constexpr int kMaxHeadDim = 256;

struct Parameters {
  Tensor q, k, v;                    // (T, heads, head_dim); v empty: no cache is written
  const float* q_norm;               // (head_dim) or null
  const float* k_norm;               // (head_dim) or null
  const std::int32_t* positions;     // (T)
  const float* cos_sin;              // (max_positions, head_dim)
  const std::int64_t* slot_mapping;  // (T)
  KvCache cache;
  float eps;
  bool interleaved;
};

// Element `d` of slot `slot`, head `head`.
template <typename T>
__device__ T* cache_entry(const Tensor& cache, std::int64_t slot, int head) {
  const std::int64_t block_size = cache.shape[2];
  return reinterpret_cast<T*>(static_cast<char*>(cache.data) + slot / block_size * cache.stride[0] +
                              head * cache.stride[1] + slot % block_size * cache.stride[2]);
}

// Lane `i` of a head's tile holds the pairs i, i + kLanes, ..: both elements of each.
template <typename T, typename CacheT>
__device__ void rotate_head(const Parameters& p, const T* head, T* out, CacheT* cached, const float* norm, int dim,
                            int token, int lane) {
  constexpr int kPairs = kMaxHeadDim / 2 / kLanes;
  const int half = dim / 2;
  const float* angles = p.cos_sin + static_cast<std::int64_t>(p.positions[token]) * dim;
  float first[kPairs], second[kPairs];
  float square_sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const int pair = lane + j * kLanes;
    first[j] = second[j] = 0.0f;
    if (pair >= half) continue;
    first[j] = load(head + (p.interleaved ? 2 * pair : pair));
    second[j] = load(head + (p.interleaved ? 2 * pair + 1 : pair + half));
    square_sum += first[j] * first[j] + second[j] * second[j];
  }
  const float scale = norm ? 1.0f / sqrtf(tile_sum(square_sum) / dim + p.eps) : 1.0f;
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const int pair = lane + j * kLanes;
    if (pair >= half) continue;
    const int at_first = p.interleaved ? 2 * pair : pair;
    const int at_second = p.interleaved ? 2 * pair + 1 : pair + half;
    const float a = norm ? first[j] * scale * norm[at_first] : first[j];
    const float b = norm ? second[j] * scale * norm[at_second] : second[j];
    const float cosine = angles[pair], sine = angles[half + pair];
    const float rotated_a = a * cosine - b * sine;
    const float rotated_b = a * sine + b * cosine;
    if (out) store(out + at_first, rotated_a), store(out + at_second, rotated_b);
    if (cached) store(cached + at_first, rotated_a), store(cached + at_second, rotated_b);
  }
}

// One tile per (token, head); heads of q, then of k, then of v.
template <typename T, typename CacheT>
__global__ void __launch_bounds__(128) rope_kernel(Parameters p) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int token = blockIdx.x;
  const int dim = static_cast<int>(p.q.shape[2]);
  const int q_heads = static_cast<int>(p.q.shape[1]), kv_heads = static_cast<int>(p.k.shape[1]);
  const int lane = threadIdx.x % kLanes;
  int head = blockIdx.y * (blockDim.x / kLanes) + threadIdx.x / kLanes;
  const bool writes_cache = p.slot_mapping != nullptr;
  const std::int64_t slot = writes_cache ? p.slot_mapping[token] : -1;

  if (head < q_heads) {
    T* q = row_at<T>(p.q, token, head);
    rotate_head<T, CacheT>(p, q, q, nullptr, p.q_norm, dim, token, lane);
    return;
  }
  head -= q_heads;
  if (head < kv_heads) {
    T* k = row_at<T>(p.k, token, head);
    CacheT* cached = slot >= 0 ? cache_entry<CacheT>(p.cache.keys, slot, head) : nullptr;
    rotate_head<T, CacheT>(p, k, writes_cache ? nullptr : k, cached, p.k_norm, dim, token, lane);
    return;
  }
  head -= kv_heads;
  if (head >= kv_heads || slot < 0) return;
  const T* v = row_at<T>(p.v, token, head);
  CacheT* cached = cache_entry<CacheT>(p.cache.values, slot, head);
  for (int d = lane; d < dim; d += kLanes) store(cached + d, load(v + d));
}

void launch_rope(LaunchCounter& counter, Queue* queue, const Parameters& p, DType cache_type) {
  if (p.q.rows() == 0) return;
  if (p.q.shape[2] > kMaxHeadDim) throw Error("rope takes heads of at most " + std::to_string(kMaxHeadDim));
  const std::int64_t tiles = p.q.shape[1] + (p.v.empty() ? 1 : 2) * p.k.shape[1];
  const Shape shape{dim3(static_cast<unsigned>(p.q.rows()), blocks_for(tiles, 128 / kLanes)), dim3(128)};
  with_activation(p.q.dtype, "rope", [&](auto* type) {
    with_type(cache_type, "the KV cache", [&](auto* cached) {
      launch(counter, queue, shape,
             rope_kernel<std::remove_pointer_t<decltype(type)>, std::remove_pointer_t<decltype(cached)>>, p);
    });
  });
}

// One block per token and head.
template <typename T, typename CacheT>
__global__ void __launch_bounds__(kLanes) kv_write_kernel(KvWriteArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int token = blockIdx.x, head = blockIdx.y;
  const std::int64_t slot = a.slot_mapping[token];
  if (slot < 0) return;
  const T* k = row_at<T>(a.k, token, head);
  const T* v = row_at<T>(a.v, token, head);
  CacheT* keys = cache_entry<CacheT>(a.cache.keys, slot, head);
  CacheT* values = cache_entry<CacheT>(a.cache.values, slot, head);
  for (int d = threadIdx.x; d < a.k.shape[2]; d += kLanes) {
    store(keys + d, load(k + d));
    store(values + d, load(v + d));
  }
}

}  // namespace

void rope(Queue* queue, const RopeArgs& args) {
  static LaunchCounter counter("rope");
  Parameters p{};
  p.q = args.q, p.k = args.k;
  p.positions = args.positions, p.cos_sin = args.cos_sin, p.interleaved = args.interleaved;
  launch_rope(counter, queue, p, DType::F32);
}

void rope_kv_write(Queue* queue, const RopeKvWriteArgs& args) {
  static LaunchCounter counter("rope_kv_write");
  Parameters p{};
  p.q = args.q, p.k = args.k, p.v = args.v;
  p.q_norm = args.q_norm.as<float>(), p.k_norm = args.k_norm.as<float>(), p.eps = args.eps;
  p.positions = args.positions, p.cos_sin = args.cos_sin, p.interleaved = args.interleaved;
  p.slot_mapping = args.slot_mapping, p.cache = args.cache;
  launch_rope(counter, queue, p, args.cache.keys.dtype);
}

void kv_write(Queue* queue, const KvWriteArgs& args) {
  static LaunchCounter counter("kv_write");
  if (args.k.size() == 0) return;
  const Shape shape{dim3(static_cast<unsigned>(args.k.rows()), static_cast<unsigned>(args.k.shape[1])), dim3(kLanes)};
  with_activation(args.k.dtype, "kv_write", [&](auto* type) {
    with_type(args.cache.keys.dtype, "the KV cache", [&](auto* cached) {
      launch(counter, queue, shape,
             kv_write_kernel<std::remove_pointer_t<decltype(type)>, std::remove_pointer_t<decltype(cached)>>, args);
    });
  });
}

}  // namespace vt::gpu

// Attention of one new token inside a decode step: a block takes one KV head and one split of the context; the last
// block of a head to end folds the splits in order. What needs no query is read before the queries are there.
#pragma once

#include <cstdint>

#include "gpu/number.h"
#include "gpu/tile.h"
#include "vt/ops.h"

namespace vt::gpu::cuda {

constexpr int kStepHeadDim = 128;
constexpr int kStepMaxSplits = 16;
constexpr int kStepSlot = kStepHeadDim + 8;  // floats that a split leaves per head: maximum, sum, padding, values

struct StepCache {
  unsigned char* keys;
  unsigned char* values;
  std::int64_t block_stride, head_stride, token_stride;  // bytes
  int block_size;
};

struct StepAttention {
  const float* qkv;        // ((heads + 2 * kv_heads) * head_dim), before norm and rope
  BFloat16* mixed;         // (heads * head_dim) out
  float* partial;          // (heads, kStepMaxSplits, kStepSlot)
  unsigned int* arrivals;  // (kv_heads), zero between launches
  const std::int32_t* block_table;
  const std::int32_t* seq_len;
  const std::int32_t* position;
  const std::int64_t* slot_mapping;
  const float* cos_sin;
  int kv_heads;
  float scale;
  float eps;
  bool interleaved;
};

template <int kGroup>
struct StepAttentionShared {
  float q[kGroup][kStepHeadDim];
  float scores[kGroup][64];
  float rescale[kGroup];
  float maximum[kGroup];
  float sum[kGroup];
  alignas(16) BFloat16 key[kStepHeadDim];
  alignas(16) BFloat16 value[kStepHeadDim];
  bool is_last;
};

// Sums v[i] over the lanes of a warp, for all i at once. Lane l keeps in v[0].. the sums of index l * N / 32 and on.
template <int N>
__device__ void sum_over_lanes(float (&v)[N], int lane) {
  int width = N;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    if (width > 1) {
      width /= 2;
      const bool upper = lane & mask;
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        if (i >= width) continue;
        const float mine = upper ? v[i + width] : v[i], given = upper ? v[i] : v[i + width];
        v[i] = mine + vendor::shuffle_xor(given, mask);
      }
    } else {
      v[0] += vendor::shuffle_xor(v[0], mask);
    }
  }
}

// kGroup query heads per KV head; 16 warps.
template <int kGroup>
class DecodeAttention {
 public:
  static constexpr int kThreads = 512;
  static constexpr int kTokens = 64;  // per step: eight threads share a key, a lane takes two values
  static constexpr int kKeyWarp = 14, kValueWarp = 15;
  using Shared = StepAttentionShared<kGroup>;

  __device__ DecodeAttention(const StepAttention& p, const StepCache& layout, Shared& shared)
      : p_(p), s_(shared), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {
    context_ = *p.seq_len;
    const int steps = (context_ + kTokens - 1) / kTokens;
    split_size_ = (steps + kStepMaxSplits - 1) / kStepMaxSplits * kTokens;
    splits_ = (context_ + split_size_ - 1) / split_size_;
    items_ = p.kv_heads * splits_;
    const float* angles = p.cos_sin + static_cast<std::int64_t>(*p.position) * kStepHeadDim;
    for (int i = 0; i < 2; ++i) {
      cosine_[i] = angles[lane_ + 32 * i];
      sine_[i] = angles[kStepHeadDim / 2 + lane_ + 32 * i];
    }
    const std::int64_t slot = *p.slot_mapping;
    new_offset_ =
        slot < 0 ? -1 : slot / layout.block_size * layout.block_stride + slot % layout.block_size * layout.token_stride;
    const int item = blockIdx.x;
    if (item < items_) locate(layout, item / splits_, item % splits_ * split_size_);
  }

  // What the block's first item needs of this layer but the queries.
  __device__ void prefetch(const StepCache& cache, const float* q_norm, const float* k_norm) {
    const float* norm = warp_ == kKeyWarp ? k_norm : q_norm;
    has_norm_ = norm != nullptr;
    for (int i = 0; has_norm_ && i < 4; ++i) norm_[i] = norm[element(i)];
    if (static_cast<int>(blockIdx.x) < items_) load(cache);
  }

  __device__ void run(const StepCache& cache) {
    for (int item = blockIdx.x; item < items_; item += gridDim.x) {
      const int kv_head = item / splits_, split = item % splits_;
      const int first = split * split_size_, end = min(first + split_size_, context_);
      place(cache, kv_head, end == context_);
      float values[kGroup * 8] = {};
      float maximum = -3.0e38f, sum = 0.0f;  // of query head `warp_`
      for (int at = first; at < end; at += kTokens) {
        if (item != static_cast<int>(blockIdx.x) || at != first) {
          locate(cache, kv_head, at);
          load(cache);
        }
        __syncthreads();
        score(at, end);
        __syncthreads();
        if (warp_ < kGroup) soften(maximum, sum);
        __syncthreads();
        add_values(at, end, values);
      }
      if (warp_ < kGroup && lane_ == 0) s_.maximum[warp_] = maximum, s_.sum[warp_] = sum;
      sum_over_lanes(values, lane_);
      __syncthreads();
      finish(kv_head, split, values);
      // The block's first item is located again for the next layer.
      if (item + static_cast<int>(gridDim.x) >= items_ &&
          (item != static_cast<int>(blockIdx.x) || split_size_ > kTokens)) {
        locate(cache, blockIdx.x / splits_, blockIdx.x % splits_ * split_size_);
      }
    }
  }

 private:
  // Elements of a head that a lane holds: two pairs that are rotated, each's first, then their seconds.
  __device__ int element(int i) const {
    const int pair = lane_ + i % 2 * 32;
    if (p_.interleaved) return 2 * pair + i / 2;
    return pair + i / 2 * (kStepHeadDim / 2);
  }

  // Byte offsets of the tokens that this thread reads in the step from position `at` on.
  __device__ void locate(const StepCache& cache, int kv_head, int at) {
    const auto offset = [&](int token) {
      const int position = min(at + token, context_ - 1);
      return p_.block_table[position / cache.block_size] * cache.block_stride + kv_head * cache.head_stride +
             position % cache.block_size * cache.token_stride;
    };
    key_offset_ = offset(threadIdx.x / 8) + threadIdx.x % 8 * 16;
    for (int i = 0; i < 2; ++i) value_offset_[i] = offset(lane_ + 32 * i) + warp_ * 16;
  }

  __device__ void load(const StepCache& cache) {
    for (int i = 0; i < 2; ++i) {
      keys_[i] = *reinterpret_cast<const uint4*>(cache.keys + key_offset_ + i * kStepHeadDim);
      values_[i] = *reinterpret_cast<const uint4*>(cache.values + value_offset_[i]);
    }
  }

  // Norm and rope of a head's four elements that this lane holds.
  __device__ void rotate(const float* head, float (&out)[4]) const {
    float in[4], square_sum = 0.0f;
    for (int i = 0; i < 4; ++i) in[i] = __ldcg(head + element(i));
    for (int i = 0; i < 4; ++i) square_sum += in[i] * in[i];
    if (has_norm_) {
      const float scale = 1.0f / sqrtf(tile_sum(square_sum) / kStepHeadDim + p_.eps);
      for (int i = 0; i < 4; ++i) in[i] *= scale * norm_[i];
    }
    for (int i = 0; i < 2; ++i) {
      out[i] = in[i] * cosine_[i] - in[2 + i] * sine_[i];
      out[2 + i] = in[i] * sine_[i] + in[2 + i] * cosine_[i];
    }
  }

  // Queries into shared memory; the new token's key and value there and into the cache.
  __device__ void place(const StepCache& cache, int kv_head, bool with_new_token) {
    const int q_heads = p_.kv_heads * kGroup;
    const std::int64_t to = new_offset_ + kv_head * cache.head_stride;
    if (warp_ < kGroup) {
      float rotated[4];
      rotate(p_.qkv + (kv_head * kGroup + warp_) * kStepHeadDim, rotated);
      for (int i = 0; i < 4; ++i) s_.q[warp_][element(i)] = rotated[i] * p_.scale;
    } else if (warp_ == kKeyWarp && with_new_token) {
      float rotated[4];
      rotate(p_.qkv + (q_heads + kv_head) * kStepHeadDim, rotated);
      for (int i = 0; i < 4; ++i) {
        store(s_.key + element(i), rotated[i]);
        if (new_offset_ >= 0) store(reinterpret_cast<BFloat16*>(cache.keys + to) + element(i), rotated[i]);
      }
    } else if (warp_ == kValueWarp && with_new_token) {
      const float* value = p_.qkv + (q_heads + p_.kv_heads + kv_head) * kStepHeadDim;
      for (int d = lane_; d < kStepHeadDim; d += 32) {
        const float element = __ldcg(value + d);
        store(s_.value + d, element);
        if (new_offset_ >= 0) store(reinterpret_cast<BFloat16*>(cache.values + to) + d, element);
      }
    }
  }

  __device__ void score(int at, int end) {
    const int token = threadIdx.x / 8, sub = threadIdx.x % 8;
    const bool is_new = at + token == context_ - 1;
    float dots[kGroup] = {};
    for (int i = 0; i < 2; ++i) {
      const int d = i * (kStepHeadDim / 2) + sub * 8;
      float key[8];
      unpack(static_cast<const BFloat16*>(nullptr), is_new ? *reinterpret_cast<const uint4*>(s_.key + d) : keys_[i],
             key);
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        float q[8];
        load8(s_.q[g] + d, q);
        for (int j = 0; j < 8; ++j) dots[g] = fmaf(q[j], key[j], dots[g]);
      }
    }
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      for (int mask = 4; mask > 0; mask /= 2) dots[g] += vendor::shuffle_xor(dots[g], mask);
      if (sub == g) s_.scores[g][token] = at + token < end ? dots[g] : -3.0e38f;
    }
  }

  // Scores of head `warp_` become weights.
  __device__ void soften(float& maximum, float& sum) {
    const float low = s_.scores[warp_][lane_], high = s_.scores[warp_][lane_ + 32];
    const float best = fmaxf(maximum, tile_max(fmaxf(low, high)));
    const float low_weight = expf(low - best), high_weight = expf(high - best);
    s_.scores[warp_][lane_] = low_weight;
    s_.scores[warp_][lane_ + 32] = high_weight;
    const float rescale = expf(maximum - best);
    sum = fmaf(sum, rescale, tile_sum(low_weight + high_weight));
    maximum = best;
    if (lane_ == 0) s_.rescale[warp_] = rescale;
  }

  // Dims 8 * warp_.. of two tokens.
  __device__ void add_values(int at, int end, float (&values)[kGroup * 8]) {
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      for (int j = 0; j < 8; ++j) values[g * 8 + j] *= s_.rescale[g];
    }
    for (int i = 0; i < 2; ++i) {
      const int token = lane_ + 32 * i, position = at + token;
      if (position >= end) continue;
      float value[8];
      unpack(static_cast<const BFloat16*>(nullptr),
             position == context_ - 1 ? *reinterpret_cast<const uint4*>(s_.value + warp_ * 8) : values_[i], value);
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        for (int j = 0; j < 8; ++j) values[g * 8 + j] = fmaf(s_.scores[g][token], value[j], values[g * 8 + j]);
      }
    }
  }

  // `values` as sum_over_lanes leaves them.
  __device__ void finish(int kv_head, int split, const float (&values)[kGroup * 8]) {
    constexpr int kKept = kGroup * 8 > 32 ? kGroup * 8 / 32 : 1;
    constexpr int kLanesPerValue = kGroup * 8 < 32 ? 32 / (kGroup * 8) : 1;
    for (int i = 0; i < kKept && lane_ % kLanesPerValue == 0; ++i) {
      const int index = lane_ * kKept / kLanesPerValue + i, g = index / 8, d = warp_ * 8 + index % 8;
      if (splits_ == 1) {
        store(p_.mixed + (kv_head * kGroup + g) * kStepHeadDim + d, values[i] / s_.sum[g]);
      } else {
        slot(kv_head, g, split)[8 + d] = values[i];
      }
    }
    if (splits_ == 1) return __syncthreads();
    if (threadIdx.x < kGroup) {
      slot(kv_head, threadIdx.x, split)[0] = s_.maximum[threadIdx.x];
      slot(kv_head, threadIdx.x, split)[1] = s_.sum[threadIdx.x];
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      s_.is_last = atomicAdd(p_.arrivals + kv_head, 1u) == static_cast<unsigned int>(splits_ - 1);
      if (s_.is_last) p_.arrivals[kv_head] = 0u;
    }
    __syncthreads();
    if (s_.is_last) fold(kv_head);
    __syncthreads();
  }

  __device__ float* slot(int kv_head, int g, int split) const {
    return p_.partial + ((kv_head * kGroup + g) * kStepMaxSplits + split) * kStepSlot;
  }

  __device__ void fold(int kv_head) {
    __threadfence();
    for (int i = threadIdx.x; i < kGroup * kStepHeadDim; i += kThreads) {
      const int g = i / kStepHeadDim, d = i % kStepHeadDim;
      float maxima[kStepMaxSplits], sums[kStepMaxSplits], values[kStepMaxSplits];
#pragma unroll
      for (int split = 0; split < kStepMaxSplits; ++split) {
        const float* left = slot(kv_head, g, split);
        maxima[split] = -3.0e38f, sums[split] = values[split] = 0.0f;
        if (split < splits_)
          maxima[split] = __ldcg(left), sums[split] = __ldcg(left + 1), values[split] = __ldcg(left + 8 + d);
      }
      float best = -3.0e38f, sum = 0.0f, value = 0.0f;
#pragma unroll
      for (int split = 0; split < kStepMaxSplits; ++split) best = fmaxf(best, maxima[split]);
#pragma unroll
      for (int split = 0; split < kStepMaxSplits; ++split) {
        const float weight = expf(maxima[split] - best);
        sum = fmaf(sums[split], weight, sum);
        value = fmaf(values[split], weight, value);
      }
      store(p_.mixed + (kv_head * kGroup + g) * kStepHeadDim + d, value / sum);
    }
  }

  const StepAttention& p_;
  Shared& s_;
  int warp_, lane_;
  int context_, split_size_, splits_, items_;
  float cosine_[2], sine_[2], norm_[4];
  bool has_norm_ = false;
  std::int64_t new_offset_, key_offset_ = 0, value_offset_[2] = {};
  uint4 keys_[2] = {}, values_[2] = {};
};

}  // namespace vt::gpu::cuda

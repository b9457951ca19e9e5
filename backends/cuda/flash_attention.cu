// Causal attention of a prompt over the paged cache on tensor cores, BF16: a block takes 128 queries of one head and
// walks the keys once, with a running softmax. Steps of single queries go to query_attention.

#include "attention.h"
#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/view.h"
#include "tensor_core.h"

namespace vt::gpu::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kQueries = 128;  // 16 per warp
constexpr int kKeys = 64;      // per step
constexpr float kLowest = -1.0e30f;

// Keys or values `first`.. of one head into shared memory; zeros past `end`.
template <int kDim>
__device__ void fetch_tile(std::uint32_t to, const Tensor& cache, const std::int32_t* blocks, int kv_head, int first,
                           int end) {
  constexpr int kPieces = kDim / 8;
  const int block_size = static_cast<int>(cache.shape[2]);
#pragma unroll
  for (int i = 0; i < kKeys * kPieces / kThreads; ++i) {
    const int row = (threadIdx.x + i * kThreads) / kPieces, piece = threadIdx.x % kPieces;
    const int position = first + row;
    const bool valid = position < end;
    const std::int64_t block = blocks[valid ? position / block_size : 0];
    const char* from = static_cast<const char*>(cache.data) + block * cache.stride[0] + kv_head * cache.stride[1] +
                       (valid ? position % block_size : 0) * cache.stride[2] + piece * 16;
    copy_async16(to + in_head_tile<kDim>(row, piece), from, valid);
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads) flash_attention_kernel(AttentionArgs a) {
  constexpr int kPieces = kDim / 8, kTileBytes = kKeys * kDim * 2;
  extern __shared__ __align__(128) unsigned char shared[];
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int request = blockIdx.z, head = blockIdx.y;
  const int start = a.query_start_loc[request];
  const int query_len = a.query_start_loc[request + 1] - start;
  const int first_query = (gridDim.x - 1 - blockIdx.x) * kQueries;  // the longest rows first
  const int seq_len = a.seq_lens[request];
  if (first_query >= query_len || seq_len == 0) return;
  const int kv_head = head / static_cast<int>(a.q.shape[1] / a.cache.keys.shape[1]);
  const std::int32_t* blocks = a.block_table + static_cast<std::int64_t>(request) * a.block_table_stride;
  const int before = seq_len - query_len;  // position of the request's first query
  const int end = min(seq_len, before + first_query + kQueries);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t queries = shared_address(shared), tiles = queries + kQueries * kDim * 2;

#pragma unroll
  for (int i = 0; i < kQueries * kPieces / kThreads; ++i) {
    const int r = (threadIdx.x + i * kThreads) / kPieces, piece = threadIdx.x % kPieces;
    const bool valid = first_query + r < query_len;
    const BFloat16* from = row_at<BFloat16>(a.q, start + (valid ? first_query + r : 0), head) + piece * 8;
    copy_async16(queries + in_head_tile<kDim>(r, piece), from, valid);
  }
  fetch_tile<kDim>(tiles, a.cache.keys, blocks, kv_head, 0, end);
  fetch_tile<kDim>(tiles + kTileBytes, a.cache.values, blocks, kv_head, 0, end);
  commit_copies();

  const float scale = a.scale * 1.44269504f;  // for exp2
  const int row =
      before + first_query + warp * 16 + lane / 4;  // position of this thread's first query; the other is 8 on
  float out[kDim / 8][4] = {};
  float best[2] = {kLowest, kLowest}, sum[2] = {};
  const int steps = (end + kKeys - 1) / kKeys;
  for (int step = 0; step < steps; ++step) {
    const std::uint32_t keys = tiles + step % 2 * 2 * kTileBytes, values = keys + kTileBytes;
    if (step + 1 < steps) {
      const std::uint32_t next = tiles + (step + 1) % 2 * 2 * kTileBytes;
      fetch_tile<kDim>(next, a.cache.keys, blocks, kv_head, (step + 1) * kKeys, end);
      fetch_tile<kDim>(next + kTileBytes, a.cache.values, blocks, kv_head, (step + 1) * kKeys, end);
      commit_copies();
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    __syncthreads();

    float scores[kKeys / 8][4] = {};
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      std::uint32_t q[4];
      load_matrices(q, queries + in_head_tile<kDim>(warp * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
      for (int c = 0; c < kKeys / 8; c += 2) {
        std::uint32_t b[4];
        load_matrices(b, keys + in_head_tile<kDim>(c * 8 + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
        multiply_add(scores[c], q, b[0], b[1]);
        multiply_add(scores[c + 1], q, b[2], b[3]);
      }
    }

    const bool masked = (step + 1) * kKeys > before + first_query + warp * 16;
    float highest[2] = {best[0], best[1]};
#pragma unroll
    for (int c = 0; c < kKeys / 8; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[c][i] *= scale;
        const int key = step * kKeys + c * 8 + lane % 4 * 2 + i % 2;
        if (masked && (key > row + i / 2 * 8 || key >= end)) scores[c][i] = kLowest;
        highest[i / 2] = fmaxf(highest[i / 2], scores[c][i]);
      }
    }
    float keep[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      highest[h] = fmaxf(highest[h], vendor::shuffle_xor(highest[h], 1));
      highest[h] = fmaxf(highest[h], vendor::shuffle_xor(highest[h], 2));
      keep[h] = exp2f(best[h] - highest[h]);
      best[h] = highest[h];
      sum[h] *= keep[h];
    }
#pragma unroll
    for (int c = 0; c < kKeys / 8; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[c][i] = exp2f(scores[c][i] - best[i / 2]);
        sum[i / 2] += scores[c][i];
      }
    }
#pragma unroll
    for (int d = 0; d < kDim / 8; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out[d][i] *= keep[i / 2];
    }
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      const std::uint32_t p[4] = {pack_bfloat16(scores[2 * k][0], scores[2 * k][1]),
                                  pack_bfloat16(scores[2 * k][2], scores[2 * k][3]),
                                  pack_bfloat16(scores[2 * k + 1][0], scores[2 * k + 1][1]),
                                  pack_bfloat16(scores[2 * k + 1][2], scores[2 * k + 1][3])};
#pragma unroll
      for (int d = 0; d < kDim / 8; d += 2) {
        std::uint32_t v[4];
        load_matrices_transposed(v, values + in_head_tile<kDim>(k * 16 + lane % 16, d + lane / 16));
        multiply_add(out[d], p, v[0], v[1]);
        multiply_add(out[d + 1], p, v[2], v[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    sum[h] += vendor::shuffle_xor(sum[h], 1);
    sum[h] += vendor::shuffle_xor(sum[h], 2);
    const int query = first_query + warp * 16 + lane / 4 + 8 * h;
    if (query >= query_len) continue;
    auto* to = row_at<BFloat16>(a.out, start + query, head) + lane % 4 * 2;
#pragma unroll
    for (int d = 0; d < kDim / 8; ++d) {
      *reinterpret_cast<std::uint32_t*>(to + d * 8) = pack_bfloat16(out[d][2 * h] / sum[h], out[d][2 * h + 1] / sum[h]);
    }
  }
}

template <int kDim>
void launch_flash(Queue* queue, const AttentionArgs& args) {
  static LaunchCounter counter("flash_attention");
  constexpr unsigned kShared = (kQueries + 4 * kKeys) * kDim * 2;
  static const bool raised = (vendor::allow_shared(flash_attention_kernel<kDim>, kShared), true);
  (void)raised;
  const Shape shape{dim3(blocks_for(args.max_query_len, kQueries), static_cast<unsigned>(args.q.shape[1]),
                         static_cast<unsigned>(args.num_reqs)),
                    dim3(kThreads), kShared};
  launch(counter, queue, shape, flash_attention_kernel<kDim>, args);
}

}  // namespace

void flash_attention(Queue* queue, const AttentionArgs& args) {
  if (args.batch_invariant) return paged_attention(queue, args);
  if (args.q.rows() == 0 || args.num_reqs == 0) return;
  if (args.max_query_len == 1) {
    return serves_queries(args) ? query_attention(queue, args) : paged_attention(queue, args);
  }
  if (args.q.shape[2] == 128) return launch_flash<128>(queue, args);
  launch_flash<64>(queue, args);
}

std::string flash_attention_refuses(Device*, Precision, const AttentionShape& shape) {
  if (shape.activation_dtype != DType::BF16 || shape.kv_dtype != DType::BF16) return "it takes BF16 alone";
  if (shape.head_dim != 64 && shape.head_dim != 128) {
    return "head_dim " + std::to_string(shape.head_dim) + " is neither 64 nor 128";
  }
  return {};
}

}  // namespace vt::gpu::cuda

// out = x * weight^T for up to 64 rows of x: bound by reading the weight, so copies run several steps ahead. A block
// computes 64 outputs (with SiLU 32 gates and their 32 ups) over a slice of the inputs; the last block of a tile to end
// adds up the slices in order.

#include <algorithm>

#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/workspace.h"
#include "matrix.h"
#include "tensor_core.h"

namespace vt::gpu::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kOutputs = 64;  // weight rows per block
constexpr int kDepth = 64;    // inputs per step
constexpr int kStages = 6;
constexpr int kMinSteps = 6;  // per slice
constexpr int kMaxSlices = 12;
constexpr int kResident = 3;  // blocks of up to 32 tokens that a multiprocessor holds

struct Parameters {
  const BFloat16* weight;  // (outputs, cols)
  const BFloat16* up;      // or null
  const BFloat16* x;       // (rows, cols)
  std::int64_t x_stride;   // elements
  void* out;
  std::int64_t out_stride;  // elements
  const float* bias;
  float* partial;  // (token tiles, output tiles, slices, kTokens, kOutputs)
  unsigned int* arrivals;
  int outputs;
  int cols;
  int rows;
  int steps;  // of a slice
  bool out_is_float;
};

__device__ void write_pair(const Parameters& p, int row, int output, float first, float second) {
  if (row >= p.rows || output >= p.outputs) return;
  if (p.bias) first += p.bias[output], second += p.bias[output + 1];
  const std::int64_t at = row * p.out_stride + output;
  if (p.out_is_float) {
    static_cast<float*>(p.out)[at] = first;
    static_cast<float*>(p.out)[at + 1] = second;
  } else {
    store(static_cast<BFloat16*>(p.out) + at, first);
    store(static_cast<BFloat16*>(p.out) + at + 1, second);
  }
}

__device__ inline float silu(float x) {
  return x / (1.0f + expf(-x));
}

template <int kTokens, bool kSilu>
__global__ void __launch_bounds__(kThreads) skinny_kernel(Parameters p) {
  constexpr int kWeightBytes = kOutputs * 128, kInputBytes = kTokens * 128;
  constexpr int kStageBytes = kWeightBytes + kInputBytes;
  constexpr int kColumns = kTokens / 8;
  constexpr int kTileOutputs = kSilu ? kOutputs / 2 : kOutputs;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ bool is_last;
  vendor::let_successor_start();

  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int first_output = blockIdx.x * kTileOutputs;
  const int first_token = blockIdx.z * kTokens;
  const int all_steps = p.cols / kDepth;
  const int first_step = blockIdx.y * p.steps;
  const int steps = min(p.steps, all_steps - first_step);
  const std::uint32_t base = shared_address(shared);

  const auto fetch_weight = [&](int step) {
    const std::uint32_t to = base + step % kStages * kStageBytes;
    const int column = (first_step + step) * kDepth;
#pragma unroll
    for (int i = 0; i < kOutputs * 8 / kThreads; ++i) {
      const int row = (thread + i * kThreads) / 8, piece = thread % 8;
      const bool is_up = kSilu && row >= kTileOutputs;
      const int output = first_output + (is_up ? row - kTileOutputs : row);
      const bool valid = step < steps && output < p.outputs;
      const BFloat16* from =
          (is_up ? p.up : p.weight) + (valid ? static_cast<std::int64_t>(output) * p.cols + column + piece * 8 : 0);
      copy_async16(to + swizzled(row, piece), from, valid);
    }
  };
  const auto fetch_input = [&](int step) {
    const std::uint32_t to = base + step % kStages * kStageBytes + kWeightBytes;
    const int column = (first_step + step) * kDepth;
#pragma unroll
    for (int i = 0; i < (kTokens * 8 + kThreads - 1) / kThreads; ++i) {
      const int row = (thread + i * kThreads) / 8, piece = thread % 8;
      if (row >= kTokens) break;
      const bool valid = step < steps && first_token + row < p.rows;
      const BFloat16* from = p.x + (valid ? (first_token + row) * p.x_stride + column + piece * 8 : 0);
      copy_async16(to + swizzled(row, piece), from, valid);
    }
  };

  for (int step = 0; step < kStages - 1; ++step) fetch_weight(step);
  vendor::wait_for_predecessor();
  for (int step = 0; step < kStages - 1; ++step) {
    fetch_input(step);
    commit_copies();
  }

  float sums[kColumns][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    __syncthreads();
    fetch_weight(step + kStages - 1);
    fetch_input(step + kStages - 1);
    commit_copies();
    const std::uint32_t weights = base + step % kStages * kStageBytes, inputs = weights + kWeightBytes;
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      std::uint32_t a[4];
      load_matrices(a, weights + swizzled(warp * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
      for (int c = 0; c < kColumns; c += 2) {
        std::uint32_t b[4];
        load_matrices(b, inputs + swizzled(c * 8 + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
        multiply_add(sums[c], a, b[0], b[1]);
        multiply_add(sums[c + 1], a, b[2], b[3]);
      }
    }
  }
  wait_copies<0>();
  __syncthreads();

  // Fragment (output, token) to (token, output) through shared memory.
  float* tile = reinterpret_cast<float*>(shared);
  constexpr int kPitch = kOutputs + 4, kQuads = kOutputs / 4;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = c * 8 + lane % 4 * 2 + i % 2, output = warp * 16 + lane / 4 + i / 2 * 8;
      tile[token * kPitch + output] = sums[c][i];
    }
  }
  __syncthreads();

  const int slices = gridDim.y;
  if (slices > 1) {
    const std::int64_t place = blockIdx.z * gridDim.x + blockIdx.x;
    float4* partial = reinterpret_cast<float4*>(p.partial) + place * slices * kTokens * kQuads;
    const int live = min(kTokens, p.rows - first_token) * kQuads;
    for (int i = thread; i < live; i += kThreads) {
      partial[blockIdx.y * kTokens * kQuads + i] =
          *reinterpret_cast<const float4*>(tile + i / kQuads * kPitch + i % kQuads * 4);
    }
    __threadfence();
    __syncthreads();
    if (thread == 0) {
      is_last = atomicAdd(p.arrivals + place, 1u) == static_cast<unsigned int>(slices - 1);
      if (is_last) p.arrivals[place] = 0u;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    for (int i = thread; i < live; i += kThreads) {
      float4 parts[kMaxSlices];
#pragma unroll
      for (int slice = 0; slice < kMaxSlices; ++slice) {
        if (slice < slices) parts[slice] = __ldcg(partial + slice * kTokens * kQuads + i);
      }
      float4 sum = parts[0];
#pragma unroll
      for (int slice = 1; slice < kMaxSlices; ++slice) {
        if (slice >= slices) continue;
        sum.x += parts[slice].x, sum.y += parts[slice].y, sum.z += parts[slice].z, sum.w += parts[slice].w;
      }
      *reinterpret_cast<float4*>(tile + i / kQuads * kPitch + i % kQuads * 4) = sum;
    }
    __syncthreads();
  }

  for (int i = thread; i < kTokens * kTileOutputs / 2; i += kThreads) {
    const int token = i / (kTileOutputs / 2), output = i % (kTileOutputs / 2) * 2;
    float first = tile[token * kPitch + output], second = tile[token * kPitch + output + 1];
    if (kSilu) {
      first = silu(first) * tile[token * kPitch + kTileOutputs + output];
      second = silu(second) * tile[token * kPitch + kTileOutputs + output + 1];
    }
    write_pair(p, first_token + token, first_output + output, first, second);
  }
}

// From the weight's shape alone, so that a row is added up the same way in any batch.
int slices_for(int tiles, int all_steps, int multiprocessors) {
  const int wanted = kResident * multiprocessors / std::max(1, tiles);
  return std::clamp(wanted, 1, std::clamp(all_steps / kMinSteps, 1, kMaxSlices));
}

template <int kTokens, bool kSilu>
void launch_tile(Queue* queue, const Matmul& m) {
  static LaunchCounter counter(kSilu ? "skinny_matmul_silu_mul" : "skinny_matmul");
  constexpr unsigned kShared = kStages * (kOutputs + kTokens) * 128;
  static const bool raised = (vendor::allow_shared(skinny_kernel<kTokens, kSilu>, kShared), true);
  (void)raised;
  Parameters p{};
  p.weight = m.weight.as<BFloat16>();
  p.up = m.up.as<BFloat16>();
  p.x = m.x.as<BFloat16>();
  p.x_stride = m.x.stride[0] / 2;
  p.out = m.out.data;
  p.out_stride = m.out.stride[0] / block_shape(m.out.dtype).bytes;
  p.bias = m.bias;
  p.outputs = static_cast<int>(m.weight.rows());
  p.cols = static_cast<int>(m.weight.cols());
  p.rows = static_cast<int>(m.x.rows());
  p.out_is_float = m.out.dtype == DType::F32;
  p.arrivals = of(queue).arrivals;
  const int all_steps = p.cols / kDepth;
  const unsigned tiles = blocks_for(p.outputs, kSilu ? kOutputs / 2 : kOutputs);
  int slices = slices_for(static_cast<int>(tiles), all_steps, of(queue).device->properties.multiprocessors);
  p.steps = (all_steps + slices - 1) / slices;
  slices = (all_steps + p.steps - 1) / p.steps;
  const unsigned token_tiles = blocks_for(p.rows, kTokens);
  if (slices > 1) {
    if (tiles * token_tiles > kMaxArrivals) throw Error("a product of this many rows has more tiles than counters");
    p.partial = static_cast<float*>(
        workspace(queue, static_cast<std::size_t>(tiles) * token_tiles * slices * kTokens * kOutputs * sizeof(float)));
  }
  launch(counter, queue, {dim3(tiles, static_cast<unsigned>(slices), token_tiles), dim3(kThreads), kShared},
         skinny_kernel<kTokens, kSilu>, p);
}

template <bool kSilu>
void launch_rows(Queue* queue, const Matmul& m) {
  if (m.x.rows() <= 16) return launch_tile<16, kSilu>(queue, m);
  if (m.x.rows() <= 32) return launch_tile<32, kSilu>(queue, m);
  launch_tile<64, kSilu>(queue, m);
}

}  // namespace

void skinny_matmul(Queue* queue, const Matmul& m) {
  if (m.up.data) return launch_rows<true>(queue, m);
  launch_rows<false>(queue, m);
}

}  // namespace vt::gpu::cuda

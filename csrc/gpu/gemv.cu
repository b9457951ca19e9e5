// out = x * weight^T for few rows of x: every weight is read once for up to kMaxRows rows of x. A tile of lanes
// computes kOutputs outputs; the order of additions depends on nothing but the weight's shape, so it is
// batch-invariant.

#include <type_traits>

#include "gpu/launch.h"
#include "gpu/matmul.h"
#include "gpu/number.h"
#include "gpu/tile.h"
#include "gpu/weight.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kOutputs = 2;  // with kSilu the gate and the up row of one output
constexpr int kUnroll = 5;   // chunks of each output's row that a lane has in flight
constexpr int kMaxRows = 4;
constexpr int kBlocksPerMultiprocessor = 2;

struct Parameters {
  WeightView weight;  // with kSilu the gate
  WeightView up;
  const void* x;          // (rows, cols)
  std::int64_t x_stride;  // elements
  void* out;
  std::int64_t out_stride;  // elements
  const float* bias;        // (outputs) or null
  int rows;
  int cols;
  int slices;  // tiles that share a unit: 1, 2, 4 or 8
  bool out_is_float;
  bool aligned;  // every row of x starts at 16 bytes and is read whole in chunks
};

template <typename X>
__device__ void load_x(const Parameters& p, const X* x, int chunk, float (&out)[kChunk]) {
  if (p.aligned) return load8(x + chunk * kChunk, out);
  for (int i = 0; i < kChunk; ++i) {
    const int at = chunk * kChunk + i;
    out[i] = at < p.cols ? load(x + at) : 0.0f;
  }
}

template <typename X>
__device__ void write(const Parameters& p, int row, int output, float value) {
  if (p.bias) value += p.bias[output];
  const std::int64_t at = row * p.out_stride + output;
  if (p.out_is_float) {
    static_cast<float*>(p.out)[at] = value;
  } else {
    store(static_cast<X*>(p.out) + at, value);
  }
}

// Asks for the lines of a row of weights that follow what the registers hold, so that they are on their way while the
// predecessor still runs.
template <typename Format>
__device__ void prefetch_row(const WeightView& weight, std::int64_t start, int lane) {
  if constexpr (Format::kLine > 0) {
    for (int line = lane; line < weight.chunks / Format::kLine; line += kLanes) {
      vendor::prefetch(weight.quants + (start + line * Format::kLine) * (128 / Format::kLine));
    }
  }
}

// `p.slices` tiles share the inputs of a unit (kOutputs outputs); their sums meet in shared memory.
template <typename Format, typename X, int kRows, bool kSilu>
__global__ void __launch_bounds__(kThreads, vendor::resident_blocks(3)) gemv_kernel(Parameters p) {
  constexpr int kTiles = kThreads / kLanes;
  __shared__ float partial[2][kTiles][kOutputs * kRows];
  vendor::let_successor_start();
  const int lane = threadIdx.x % kLanes, tile = threadIdx.x / kLanes;
  const int slice = tile % p.slices, group = tile / p.slices, groups = kTiles / p.slices;
  const int chunks = p.weight.chunks;
  const int units = kSilu ? p.weight.rows : (p.weight.rows + kOutputs - 1) / kOutputs;
  const int first_row = blockIdx.y * kRows;
  const X* x = static_cast<const X*>(p.x) + first_row * p.x_stride;
  const int stride = p.slices * kLanes;
  const int rounds = (units + gridDim.x * groups - 1) / (gridDim.x * groups);

  for (int round = 0; round < rounds; ++round) {
    const int unit = blockIdx.x + gridDim.x * (group + round * groups);
    std::int64_t starts[kOutputs];
    for (int r = 0; r < kOutputs; ++r) {
      const int row = kSilu ? min(unit, p.weight.rows - 1) : min(unit * kOutputs + r, p.weight.rows - 1);
      starts[r] = static_cast<std::int64_t>(row) * chunks;
    }
    float sums[kOutputs][kRows] = {};
    for (int base = slice * kLanes + lane; base < chunks && unit < units; base += stride * kUnroll) {
      typename Format::Raw raw[kUnroll][kOutputs];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int chunk = min(base + u * stride, chunks - 1);
#pragma unroll
        for (int r = 0; r < kOutputs; ++r) {
          raw[u][r] = Format::load(kSilu && r == 1 ? p.up : p.weight, starts[r] + chunk);
        }
      }
      if (round == 0 && base < stride * kUnroll) {
        if (unit + gridDim.x * groups < units && slice == 0) {
          const int next = unit + gridDim.x * groups;
          for (int r = 0; r < kOutputs; ++r) {
            const std::int64_t start =
                static_cast<std::int64_t>(kSilu ? next : min(next * kOutputs + r, p.weight.rows - 1)) * chunks;
            prefetch_row<Format>(kSilu && r == 1 ? p.up : p.weight, start, lane);
          }
        }
        vendor::wait_for_predecessor();
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int chunk = base + u * stride;
        if (chunk >= chunks) break;
        float weights[kOutputs][kChunk];
#pragma unroll
        for (int r = 0; r < kOutputs; ++r) Format::expand(raw[u][r], weights[r]);
#pragma unroll
        for (int m = 0; m < kRows; ++m) {
          if (first_row + m >= p.rows) break;
          float values[kChunk];
          load_x(p, x + m * p.x_stride, chunk, values);
#pragma unroll
          for (int r = 0; r < kOutputs; ++r) {
#pragma unroll
            for (int i = 0; i < kChunk; ++i) sums[r][m] += weights[r][i] * values[i];
          }
        }
      }
    }
    if (round == 0) vendor::wait_for_predecessor();  // also the lanes that had nothing to load
    float (*mine)[kOutputs * kRows] = partial[round % 2];
#pragma unroll
    for (int m = 0; m < kRows; ++m) {
#pragma unroll
      for (int r = 0; r < kOutputs; ++r) {
        const float sum = tile_sum(sums[r][m]);
        if (lane == 0) mine[tile][m * kOutputs + r] = sum;
      }
    }
    __syncthreads();
    if (slice != 0 || lane >= kRows || first_row + lane >= p.rows || unit >= units) continue;
    float totals[kOutputs] = {};
    for (int s = 0; s < p.slices; ++s) {
      for (int r = 0; r < kOutputs; ++r) totals[r] += mine[tile + s][lane * kOutputs + r];
    }
    if constexpr (kSilu) {
      write<X>(p, first_row + lane, unit, totals[0] / (1.0f + expf(-totals[0])) * totals[1]);
    } else {
      for (int r = 0; r < kOutputs; ++r) {
        if (unit * kOutputs + r < p.weight.rows) write<X>(p, first_row + lane, unit * kOutputs + r, totals[r]);
      }
    }
  }
}

// As few as let every lane hold its share of a row at once.
int slices_for(int chunks) {
  int slices = 1;
  while (slices < kThreads / kLanes && chunks > slices * kLanes * kUnroll) slices *= 2;
  return slices;
}

template <typename X>
Parameters parameters_for(const Matmul& m) {
  Parameters p{};
  p.weight = view_of(m.weight);
  if (m.up.data) p.up = view_of(m.up);
  p.x = m.x.data;
  p.x_stride = m.x.stride[0] / static_cast<std::int64_t>(sizeof(X));
  p.out = m.out.data;
  p.out_stride = m.out.stride[0] / block_shape(m.out.dtype).bytes;
  p.bias = m.bias;
  p.rows = static_cast<int>(m.x.rows());
  p.cols = static_cast<int>(m.x.cols());
  p.slices = slices_for(p.weight.chunks);
  p.out_is_float = m.out.dtype == DType::F32;
  p.aligned = p.cols % kChunk == 0 && reinterpret_cast<std::uintptr_t>(m.x.data) % 16 == 0 && m.x.stride[0] % 16 == 0;
  return p;
}

template <typename Format, typename X>
void launch_format(Queue* queue, const Matmul& m) {
  static LaunchCounter plain("gemv"), fused("gemv_silu_mul");
  const Parameters p = parameters_for<X>(m);
  const bool silu = m.up.data != nullptr;
  const int group = p.rows == 1 ? 1 : kMaxRows;
  const int units = silu ? p.weight.rows : (p.weight.rows + kOutputs - 1) / kOutputs;
  const unsigned blocks =
      std::min(blocks_for(units, kThreads / kLanes / p.slices),
               static_cast<unsigned>(of(queue).device->properties.multiprocessors * kBlocksPerMultiprocessor));
  const Shape shape{dim3(blocks, blocks_for(p.rows, group)), dim3(kThreads)};
  if (silu) {
    launch(fused, queue, shape, group == 1 ? gemv_kernel<Format, X, 1, true> : gemv_kernel<Format, X, kMaxRows, true>,
           p);
  } else {
    launch(plain, queue, shape, group == 1 ? gemv_kernel<Format, X, 1, false> : gemv_kernel<Format, X, kMaxRows, false>,
           p);
  }
}

}  // namespace

void gemv(Queue* queue, const Matmul& m) {
  if (m.x.dtype == DType::BF16) {
    if (m.weight.dtype != DType::BF16)
      throw Error("BF16 activations take BF16 weights, not " + std::string(name(m.weight.dtype)));
    return launch_format<Format16<BFloat16>, BFloat16>(queue, m);
  }
  with_format(m.weight.dtype, [&](auto format) { launch_format<decltype(format), float>(queue, m); });
}

}  // namespace vt::gpu

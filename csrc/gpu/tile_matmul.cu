// out = x * weight^T for many rows of x, in float32 tiles through shared memory. Every GPU can run it.

#include "gpu/launch.h"
#include "gpu/matmul.h"
#include "gpu/number.h"
#include "gpu/weight.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;   // outputs and rows of x per block
constexpr int kDepth = 32;  // inputs per step
constexpr int kPitch = kTile + 4;
constexpr int kEach = 4;  // outputs and rows per thread

struct Parameters {
  WeightView weight;
  const void* x;
  std::int64_t x_stride;  // elements
  void* out;
  std::int64_t out_stride;  // elements
  const float* bias;
  int rows;
  int cols;
  bool out_is_float;
};

template <typename Format, typename X>
__global__ void __launch_bounds__(kThreads) tile_matmul_kernel(Parameters p) {
  __shared__ float weights[kDepth][kPitch];
  __shared__ float inputs[kDepth][kPitch];
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  // Each thread fetches one chunk of the weights and one of x per step.
  const int line = threadIdx.x / (kDepth / kChunk);
  const int part = threadIdx.x % (kDepth / kChunk);
  const int output_line = blockIdx.x * kTile + line;
  const int row_line = blockIdx.y * kTile + line;
  const int my_output = threadIdx.x % (kTile / kEach) * kEach;
  const int my_row = threadIdx.x / (kTile / kEach) * kEach;
  float sums[kEach][kEach] = {};

  for (int depth = 0; depth < p.weight.chunks * kChunk; depth += kDepth) {
    const int chunk = depth / kChunk + part;
    float values[kChunk] = {};
    if (output_line < p.weight.rows && chunk < p.weight.chunks) {
      Format::expand(Format::load(p.weight, static_cast<std::int64_t>(output_line) * p.weight.chunks + chunk), values);
    }
    for (int i = 0; i < kChunk; ++i) weights[part * kChunk + i][line] = values[i];
    const X* x = static_cast<const X*>(p.x) + row_line * p.x_stride + chunk * kChunk;
    for (int i = 0; i < kChunk; ++i) {
      inputs[part * kChunk + i][line] = row_line < p.rows && chunk * kChunk + i < p.cols ? load(x + i) : 0.0f;
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kDepth; ++k) {
      float w[kEach], v[kEach];
      for (int i = 0; i < kEach; ++i) w[i] = weights[k][my_output + i], v[i] = inputs[k][my_row + i];
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) sums[i][j] += v[i] * w[j];
      }
    }
    __syncthreads();
  }

  for (int i = 0; i < kEach; ++i) {
    const int row = blockIdx.y * kTile + my_row + i;
    for (int j = 0; j < kEach; ++j) {
      const int output = blockIdx.x * kTile + my_output + j;
      if (row >= p.rows || output >= p.weight.rows) continue;
      const float value = sums[i][j] + (p.bias ? p.bias[output] : 0.0f);
      const std::int64_t at = row * p.out_stride + output;
      if (p.out_is_float) {
        static_cast<float*>(p.out)[at] = value;
      } else {
        store(static_cast<X*>(p.out) + at, value);
      }
    }
  }
}

template <typename Format, typename X>
void launch_format(Queue* queue, const Matmul& m) {
  static LaunchCounter counter("tile_matmul");
  Parameters p{};
  p.weight = view_of(m.weight);
  p.x = m.x.data;
  p.x_stride = m.x.stride[0] / static_cast<std::int64_t>(sizeof(X));
  p.out = m.out.data;
  p.out_stride = m.out.stride[0] / block_shape(m.out.dtype).bytes;
  p.bias = m.bias;
  p.rows = static_cast<int>(m.x.rows());
  p.cols = static_cast<int>(m.x.cols());
  p.out_is_float = m.out.dtype == DType::F32;
  const Shape shape{dim3(blocks_for(p.weight.rows, kTile), blocks_for(p.rows, kTile)), dim3(kThreads)};
  launch(counter, queue, shape, tile_matmul_kernel<Format, X>, p);
}

}  // namespace

void tile_matmul(Queue* queue, const Matmul& m) {
  if (m.x.dtype == DType::BF16) {
    if (m.weight.dtype != DType::BF16)
      throw Error("BF16 activations take BF16 weights, not " + std::string(name(m.weight.dtype)));
    return launch_format<Format16<BFloat16>, BFloat16>(queue, m);
  }
  with_format(m.weight.dtype, [&](auto format) { launch_format<decltype(format), float>(queue, m); });
}

}  // namespace vt::gpu

// residual += x; out = residual / rms(residual) * weight. One block per row (per head, where x has rank 3).

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/tile.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 512;
constexpr int kHeld = 8;  // elements that a thread keeps in registers between the two passes

struct Rows {
  char* data;                 // null: none
  std::int64_t outer_stride;  // bytes from token to token
  std::int64_t inner_stride;  // bytes from head to head
};

struct Parameters {
  Rows x;
  Rows residual;
  Rows out;
  const float* weight;  // (dim)
  int dim;
  float eps;
};

template <typename T>
__device__ T* row_of(const Rows& rows) {
  return reinterpret_cast<T*>(rows.data + blockIdx.x * rows.outer_stride + blockIdx.y * rows.inner_stride);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) rms_norm_kernel(Parameters p) {
  vendor::let_successor_start();
  float weights[kHeld], held[kHeld], added[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = threadIdx.x + j * kThreads;
    weights[j] = i < p.dim ? p.weight[i] : 0.0f;
  }
  vendor::wait_for_predecessor();
  const T* x = p.x.data ? row_of<T>(p.x) : nullptr;
  float* residual = p.residual.data ? row_of<float>(p.residual) : nullptr;
  T* out = row_of<T>(p.out);

  // Every load before the first store: one trip to memory.
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = threadIdx.x + j * kThreads;
    held[j] = residual && i < p.dim ? residual[i] : 0.0f;
    added[j] = x && i < p.dim ? load(x + i) : 0.0f;
  }
  float square_sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = threadIdx.x + j * kThreads;
    held[j] += added[j];
    if (residual && x && i < p.dim) residual[i] = held[j];
    square_sum += held[j] * held[j];
  }
  for (int i = threadIdx.x + kHeld * kThreads; i < p.dim; i += kThreads) {
    float value = x ? load(x + i) : 0.0f;
    if (residual) value += residual[i];
    if (residual && x) residual[i] = value;
    square_sum += value * value;
  }

  const float scale = 1.0f / sqrtf(block_sum<kThreads>(square_sum) / p.dim + p.eps);
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = threadIdx.x + j * kThreads;
    if (i < p.dim) store(out + i, held[j] * scale * weights[j]);
  }
  for (int i = threadIdx.x + kHeld * kThreads; i < p.dim; i += kThreads) {
    const float value = residual ? residual[i] : load(x + i);
    store(out + i, value * scale * p.weight[i]);
  }
}

Rows rows_of(const Tensor& view) {
  return {view.as<char>(), view.stride[0], view.rank == 3 ? view.stride[1] : 0};
}

}  // namespace

void rms_norm(Queue* queue, const RmsNormArgs& args) {
  static LaunchCounter counter("rms_norm");
  if (args.out.size() == 0) return;
  const Parameters parameters{rows_of(args.x),
                              rows_of(args.residual),
                              rows_of(args.out),
                              args.weight.as<float>(),
                              static_cast<int>(args.out.cols()),
                              args.eps};
  const auto heads = args.out.rank == 3 ? static_cast<unsigned>(args.out.shape[1]) : 1u;
  const Shape shape{dim3(static_cast<unsigned>(args.out.rows()), heads), dim3(kThreads)};
  with_activation(args.out.dtype, "rms_norm", [&](auto* type) {
    launch(counter, queue, shape, rms_norm_kernel<std::remove_pointer_t<decltype(type)>>, parameters);
  });
}

}  // namespace vt::gpu

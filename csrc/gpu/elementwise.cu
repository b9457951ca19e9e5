// SiLU-mul, gathering rows and copying cache blocks.

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/view.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kThreads) silu_mul_kernel(SiluMulArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int ffn = static_cast<int>(a.out.shape[1]);
  const int i = blockIdx.y * kThreads + threadIdx.x;
  if (i >= ffn) return;
  const T* gate_up = row_at<T>(a.gate_up, blockIdx.x);
  const float gate = load(gate_up + i);
  store(row_at<T>(a.out, blockIdx.x) + i, gate / (1.0f + expf(-gate)) * load(gate_up + ffn + i));
}

// Rows are multiples of four bytes.
__global__ void __launch_bounds__(kThreads) gather_rows_kernel(GatherRowsArgs a, int words) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int index = a.indices[blockIdx.x];
  if (index < 0) return;
  const auto* from = row_at<std::uint32_t>(a.x, index);
  auto* to = row_at<std::uint32_t>(a.out, blockIdx.x);
  for (int i = threadIdx.x; i < words; i += kThreads) to[i] = from[i];
}

__global__ void __launch_bounds__(kThreads) copy_blocks_kernel(CopyBlocksArgs a, int words) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const Tensor& cache = blockIdx.y == 0 ? a.cache.keys : a.cache.values;
  const auto* from = row_at<std::uint32_t>(cache, a.source[blockIdx.x]);
  auto* to = row_at<std::uint32_t>(cache, a.target[blockIdx.x]);
  for (int i = threadIdx.x; i < words; i += kThreads) to[i] = from[i];
}

}  // namespace

void silu_mul(Queue* queue, const SiluMulArgs& args) {
  static LaunchCounter counter("silu_mul");
  if (args.out.size() == 0) return;
  const Shape shape{dim3(static_cast<unsigned>(args.out.rows()), blocks_for(args.out.cols(), kThreads)),
                    dim3(kThreads)};
  with_activation(args.out.dtype, "silu_mul", [&](auto* type) {
    launch(counter, queue, shape, silu_mul_kernel<std::remove_pointer_t<decltype(type)>>, args);
  });
}

void gather_rows(Queue* queue, const GatherRowsArgs& args) {
  static LaunchCounter counter("gather_rows");
  if (args.out.size() == 0) return;
  const std::int64_t bytes = bytes_for(args.x.dtype, args.x.cols());
  if (bytes % 4 != 0) throw Error("gather_rows takes rows of a multiple of 4 bytes, not " + std::to_string(bytes));
  launch(counter, queue, {dim3(static_cast<unsigned>(args.out.rows())), dim3(kThreads)}, gather_rows_kernel, args,
         static_cast<int>(bytes / 4));
}

void copy_blocks(Queue* queue, const CopyBlocksArgs& args) {
  static LaunchCounter counter("copy_blocks");
  if (args.count == 0) return;
  launch(counter, queue, {dim3(static_cast<unsigned>(args.count), 2), dim3(kThreads)}, copy_blocks_kernel, args,
         static_cast<int>(args.cache.keys.stride[0] / 4));
}

}  // namespace vt::gpu

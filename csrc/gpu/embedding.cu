// Looking up rows of the embedding.

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/number.h"
#include "gpu/view.h"
#include "gpu/weight.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 128;

template <typename Format>
__global__ void __launch_bounds__(kThreads) embedding_kernel(WeightView weight, const std::int32_t* ids, Tensor out) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int chunk = blockIdx.y * kThreads + threadIdx.x;
  const int id = ids[blockIdx.x];
  if (chunk >= weight.chunks || id < 0 || id >= weight.rows) return;
  float values[kChunk];
  Format::expand(Format::load(weight, static_cast<std::int64_t>(id) * weight.chunks + chunk), values);
  float* row = row_at(out, blockIdx.x);
  for (int i = 0; i < kChunk && chunk * kChunk + i < out.shape[1]; ++i) row[chunk * kChunk + i] = values[i];
}

}  // namespace

void embedding(Queue* queue, const EmbeddingArgs& args) {
  static LaunchCounter counter("embedding");
  if (args.out.size() == 0) return;
  const WeightView weight = view_of(args.weight.tensor);
  const Shape shape{dim3(static_cast<unsigned>(args.out.rows()), blocks_for(weight.chunks, kThreads)), dim3(kThreads)};
  with_format(args.weight.tensor.dtype, [&](auto format) {
    launch(counter, queue, shape, embedding_kernel<decltype(format)>, weight, args.ids, args.out);
  });
}

}  // namespace vt::gpu

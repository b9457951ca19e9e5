// Which products run on tensor cores, and by which kernel.
#include "matrix.h"

namespace vt::gpu {
namespace {

constexpr std::int64_t kManyRows = 65;

bool aligned(const Tensor& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.stride[0] % 16 == 0;
}

}  // namespace

bool matrix_matmul(Queue* queue, const Matmul& m, bool batch_invariant) {
  if (m.x.dtype != DType::BF16 || m.weight.dtype != DType::BF16) return false;
  if (m.x.cols() % 64 != 0 || !aligned(m.x) || m.weight.rows() % 8 != 0) return false;
  if (batch_invariant) {
    cuda::skinny_matmul(queue, m);
  } else if (m.x.rows() == 1) {
    return false;
  } else if (m.x.rows() >= kManyRows && cuda::has_wide_matmul(queue)) {
    cuda::wide_matmul(queue, m);
  } else {
    cuda::skinny_matmul(queue, m);
  }
  return true;
}

}  // namespace vt::gpu

// Which kernel multiplies: few rows, the backend's matrix instructions, or the portable tiles.
#include "gpu/matmul.h"

#include "gpu/kernels.h"
#include "gpu/workspace.h"
#include "vt/error.h"

namespace vt::gpu {
namespace {

constexpr std::int64_t kFewRows = 16;

void check(const MatmulArgs& args) {
  if (args.x.cols() != args.weight.tensor.cols() || args.out.cols() != args.weight.tensor.rows()) {
    throw BadArgument("matmul: x has " + std::to_string(args.x.cols()) + " columns and out " +
                      std::to_string(args.out.cols()) + ", the weight is (" +
                      std::to_string(args.weight.tensor.rows()) + ", " + std::to_string(args.weight.tensor.cols()) +
                      ")");
  }
}

}  // namespace

void matmul(Queue* queue, const MatmulArgs& args) {
  check(args);
  if (args.x.rows() == 0) return;
  Matmul product{args.x, args.weight.tensor, {}, args.out, args.bias.as<float>()};
  if (matrix_matmul(queue, product, args.batch_invariant)) return;
  if (args.batch_invariant || args.x.rows() <= kFewRows) return gemv(queue, product);
  tile_matmul(queue, product);
}

void matmul_silu_mul(Queue* queue, const MatmulSiluMulArgs& args) {
  if (args.x.rows() == 0) return;
  const Matmul product{args.x, args.gate.tensor, args.up.tensor, args.out, nullptr};
  if (matrix_matmul(queue, product, args.batch_invariant)) return;
  if (args.batch_invariant || args.x.rows() <= kFewRows) return gemv(queue, product);

  // Two products side by side in the queue's workspace.
  const std::int64_t rows = args.x.rows(), ffn = args.out.cols();
  Tensor gate_up = make_tensor(workspace(queue, static_cast<std::size_t>(bytes_for(args.out.dtype, rows * 2 * ffn))),
                               args.out.dtype, {rows, 2 * ffn});
  tile_matmul(queue, {args.x, args.gate.tensor, {}, slice_cols(gate_up, 0, ffn), nullptr});
  tile_matmul(queue, {args.x, args.up.tensor, {}, slice_cols(gate_up, ffn, ffn), nullptr});
  silu_mul(queue, {gate_up, args.out});
}

}  // namespace vt::gpu

// out = x * weight^T + bias. Threads share the rows of the weight; each is dequantised once and met by every token.
#include <vector>

#include "device.h"
#include "reference/dequantize.h"
#include "reference/dot.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {
namespace {

void rows_of_weight(const vt::MatmulArgs& args, std::int64_t begin, std::int64_t end) {
  const vt::Tensor& weight = args.weight.tensor;
  const std::int64_t inputs = weight.cols();
  const bool plain = weight.dtype == vt::DType::F32;
  std::vector<float> dequantised(plain ? 0 : static_cast<std::size_t>(inputs));
  for (std::int64_t output = begin; output < end; ++output) {
    const float* row = weight.row<const float>(output);
    if (!plain) {
      dequantize_row(weight.dtype, row, dequantised.data(), inputs);
      row = dequantised.data();
    }
    const float bias = args.bias.empty() ? 0.0f : args.bias.as<const float>()[output];
    for (std::int64_t token = 0; token < args.x.rows(); ++token) {
      args.out.row(token)[output] = dot(row, args.x.row<const float>(token), inputs) + bias;
    }
  }
}

}  // namespace

void matmul(vt::Queue* queue, const vt::MatmulArgs& args) {
  static vt::LaunchCounter counter("matmul");
  counter.add();
  if (args.x.rows() == 0) return;
  pool_of(queue).split(args.weight.tensor.rows(), 32,
                       [&](std::int64_t begin, std::int64_t end) { rows_of_weight(args, begin, end); });
}

}  // namespace cpu::reference

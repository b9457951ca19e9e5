// out = x * weight^T + bias. Threads share the rows of the weight; each is dequantised once and met by every token.
#include <vector>

#include "device.h"
#include "reference/dequantize.h"
#include "reference/dot.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {
namespace {

constexpr int kTokens = 4;  // that meet a row while it is in registers

REFERENCE_WIDTHS void one_row(const vt::MatmulArgs& args, const float* row, std::int64_t output, float bias) {
  const std::int64_t inputs = args.weight.tensor.cols();
  std::int64_t token = 0;
  for (; token + kTokens <= args.x.rows(); token += kTokens) {
    const float* const x[kTokens] = {args.x.row<const float>(token), args.x.row<const float>(token + 1),
                                     args.x.row<const float>(token + 2), args.x.row<const float>(token + 3)};
    float sums[kTokens];
    dots<kTokens>(row, x, inputs, sums);
    for (int t = 0; t < kTokens; ++t) args.out.row(token + t)[output] = sums[t] + bias;
  }
  for (; token < args.x.rows(); ++token) {
    args.out.row(token)[output] = dot(row, args.x.row<const float>(token), inputs) + bias;
  }
}

void rows_of_weight(const vt::MatmulArgs& args, std::int64_t begin, std::int64_t end) {
  const vt::Tensor& weight = args.weight.tensor;
  const bool plain = weight.dtype == vt::DType::F32;
  std::vector<float> dequantised(plain ? 0 : static_cast<std::size_t>(weight.cols()));
  for (std::int64_t output = begin; output < end; ++output) {
    const float* row = weight.row<const float>(output);
    if (!plain) {
      dequantize_row(weight.dtype, row, dequantised.data(), weight.cols());
      row = dequantised.data();
    }
    one_row(args, row, output, args.bias.empty() ? 0.0f : args.bias.as<const float>()[output]);
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

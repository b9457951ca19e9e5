// residual += x; out = residual / rms * weight.
#include <cmath>

#include "device.h"
#include "reference/dot.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {
namespace {

void normalise(const float* in, const float* weight, float* out, std::int64_t size, float eps) {
  const float mean_square = dot(in, in, size) / static_cast<float>(size);
  const float scale = 1.0f / std::sqrt(mean_square + eps);
  for (std::int64_t i = 0; i < size; ++i) out[i] = in[i] * scale * weight[i];
}

void one_token(const vt::RmsNormArgs& args, std::int64_t token) {
  const auto* weight = args.weight.as<const float>();
  if (args.out.rank == 3) {
    for (std::int64_t head = 0; head < args.out.shape[1]; ++head) {
      normalise(args.x.row<const float>(token, head), weight, args.out.row(token, head), args.out.cols(), args.eps);
    }
    return;
  }
  const float* in = args.x.empty() ? nullptr : args.x.row<const float>(token);
  if (!args.residual.empty()) {
    float* residual = args.residual.row(token);
    if (in) {
      for (std::int64_t i = 0; i < args.out.cols(); ++i) residual[i] += in[i];
    }
    in = residual;
  }
  normalise(in, weight, args.out.row(token), args.out.cols(), args.eps);
}

}  // namespace

void rms_norm(vt::Queue* queue, const vt::RmsNormArgs& args) {
  static vt::LaunchCounter counter("rms_norm");
  counter.add();
  pool_of(queue).split(args.out.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) one_token(args, token);
  });
}

}  // namespace cpu::reference

// Rotates pairs of q and k by the angle of their position.
#include "device.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {
namespace {

void rotate(float* head, const float* cosines, const float* sines, std::int64_t half, bool interleaved) {
  const std::int64_t step = interleaved ? 2 : 1;
  const std::int64_t partner = interleaved ? 1 : half;
  for (std::int64_t i = 0; i < half; ++i) {
    float& a = head[i * step];
    float& b = head[i * step + partner];
    const float rotated = a * cosines[i] - b * sines[i];
    b = a * sines[i] + b * cosines[i];
    a = rotated;
  }
}

}  // namespace

void rope(vt::Queue* queue, const vt::RopeArgs& args) {
  static vt::LaunchCounter counter("rope");
  counter.add();
  const std::int64_t half = args.q.cols() / 2;
  pool_of(queue).split(args.q.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      const float* cosines = args.cos_sin + args.positions[token] * 2 * half;
      for (const vt::Tensor& heads : {args.q, args.k}) {
        for (std::int64_t head = 0; head < heads.shape[1]; ++head) {
          rotate(heads.row(token, head), cosines, cosines + half, half, args.interleaved);
        }
      }
    }
  });
}

}  // namespace cpu::reference

// out = silu(gate) * up
#include <cmath>

#include "device.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {

void silu_mul(vt::Queue* queue, const vt::SiluMulArgs& args) {
  static vt::LaunchCounter counter("silu_mul");
  counter.add();
  const std::int64_t size = args.out.cols();
  pool_of(queue).split(args.out.rows(), 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      const float* gate = args.gate_up.row<const float>(token);
      const float* up = gate + size;
      float* out = args.out.row(token);
      for (std::int64_t i = 0; i < size; ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
    }
  });
}

}  // namespace cpu::reference

// out[t] = weight[ids[t]], dequantised.
#include "device.h"
#include "reference/dequantize.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {

void embedding(vt::Queue* queue, const vt::EmbeddingArgs& args) {
  static vt::LaunchCounter counter("embedding");
  counter.add();
  const vt::Tensor& table = args.weight.tensor;
  pool_of(queue).split(args.out.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      dequantize_row(table.dtype, table.row<const char>(args.ids[token]), args.out.row(token), table.cols());
    }
  });
}

}  // namespace cpu::reference

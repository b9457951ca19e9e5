// Moves rows and blocks about, and counts sampled tokens.
#include <cstring>

#include "device.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {

void gather_rows(vt::Queue*, const vt::GatherRowsArgs& args) {
  static vt::LaunchCounter counter("gather_rows");
  counter.add();
  const auto bytes = static_cast<std::size_t>(vt::bytes_for(args.out.dtype, args.out.cols()));
  for (std::int64_t i = 0; i < args.out.rows(); ++i) {
    std::memcpy(args.out.row<char>(i), args.x.row<const char>(args.indices[i]), bytes);
  }
}

void copy_blocks(vt::Queue*, const vt::CopyBlocksArgs& args) {
  static vt::LaunchCounter counter("copy_blocks");
  counter.add();
  const auto bytes = static_cast<std::size_t>(args.cache.keys.stride[0]);
  for (std::int32_t i = 0; i < args.count; ++i) {
    for (const vt::Tensor& cache : {args.cache.keys, args.cache.values}) {
      std::memcpy(cache.row<char>(args.target[i]), cache.row<const char>(args.source[i]), bytes);
    }
  }
}

void count_tokens(vt::Queue*, const vt::CountTokensArgs& args) {
  static vt::LaunchCounter counter("count_tokens");
  counter.add();
  for (std::int32_t i = 0; i < args.count; ++i) {
    if (args.idx_mapping[i] < 0) continue;
    ++args.output_counts[args.idx_mapping[i] * args.vocab_size + args.token_ids[i]];
  }
}

}  // namespace cpu::reference

// Log-probability of given tokens, and the best tokens with theirs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::reference {
namespace {

// log(sum(exp(logits))), added up in one order.
double log_sum_exp(const float* logits, std::int64_t vocab) {
  const float best = *std::max_element(logits, logits + vocab);
  double sum = 0.0;
  for (std::int64_t id = 0; id < vocab; ++id) sum += std::exp(logits[id] - best);
  return best + std::log(sum);
}

void rank(const float* logits, std::int64_t vocab, std::int32_t* ids, std::int32_t count) {
  std::int32_t kept = 0;
  for (std::int32_t id = 0; id < vocab; ++id) {
    if (kept == count && !(logits[id] > logits[ids[kept - 1]])) continue;
    std::int32_t at = kept < count ? kept++ : count - 1;
    for (; at > 0 && logits[id] > logits[ids[at - 1]]; --at) ids[at] = ids[at - 1];
    ids[at] = id;
  }
  std::fill(ids + kept, ids + count, -1);
}

}  // namespace

void logprobs(vt::Queue* queue, const vt::LogprobsArgs& args) {
  static vt::LaunchCounter counter("logprobs");
  counter.add();
  pool_of(queue).each(args.logits.rows(), [&](std::int64_t line) {
    const float* logits = args.logits.row<const float>(line);
    const std::int64_t vocab = args.logits.cols();
    const double total = log_sum_exp(logits, vocab);
    const auto logprob = [&](std::int64_t id) {
      return id < 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(logits[id] - total);
    };
    args.logprobs[line] = logprob(args.token_ids[line]);
    std::int32_t* ids = args.top_ids + line * args.num_top;
    rank(logits, vocab, ids, args.num_top);
    for (std::int32_t i = 0; i < args.num_top; ++i) args.top_logprobs[line * args.num_top + i] = logprob(ids[i]);
  });
}

}  // namespace cpu::reference

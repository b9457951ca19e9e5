// See ops.h.
#include "fast/ops.h"

#include <algorithm>
#include <cmath>

#include "device.h"
#include "fast/kernels.h"
#include "fast/pack.h"
#include "reference/ops.h"
#include "vt/counters.h"

namespace cpu::fast {

const vt::OpTable kOps{
    .embedding = embedding,
    .matmul = matmul,
    .matmul_silu_mul = matmul_silu_mul,
    .rms_norm = rms_norm,
    .rope = rope,
    .silu_mul = silu_mul,
    .copy_blocks = reference::copy_blocks,
    .gather_rows = reference::gather_rows,
    .logits_processors = reference::logits_processors,
    .sample = sample,
    .logprobs = logprobs,
    .count_tokens = reference::count_tokens,
    .dequantize = reference::dequantize,
};

void embedding(vt::Queue* queue, const vt::EmbeddingArgs& args) {
  const auto layout = static_cast<Layout>(args.weight.layout);
  if (layout == Layout::file) return reference::embedding(queue, args);
  static vt::LaunchCounter counter("embedding");
  counter.add();
  const vt::Tensor& table = args.weight.tensor;
  pool_of(queue).split(args.out.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      unpack_row(layout, table.as<const std::uint8_t>(), args.ids[token], table.cols(), args.out.row(token));
    }
  });
}

namespace {

void norm_token(const vt::RmsNormArgs& args, std::int64_t token) {
  const auto* weight = args.weight.as<const float>();
  const std::int64_t size = args.out.cols();
  if (args.out.rank == 3) {
    for (std::int64_t head = 0; head < args.out.shape[1]; ++head) {
      float* in = args.x.row(token, head);
      kernels().norm(in, nullptr, weight, args.out.row(token, head), size, args.eps);
    }
    return;
  }
  const float* x = args.x.empty() ? nullptr : args.x.row<const float>(token);
  float* residual = args.residual.empty() ? nullptr : args.residual.row(token);
  kernels().norm(x, residual, weight, args.out.row(token), size, args.eps);
}

}  // namespace

void rms_norm(vt::Queue* queue, const vt::RmsNormArgs& args) {
  static vt::LaunchCounter counter("rms_norm");
  counter.add();
  pool_of(queue).split(args.out.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) norm_token(args, token);
  });
}

void silu_mul(vt::Queue* queue, const vt::SiluMulArgs& args) {
  static vt::LaunchCounter counter("silu_mul");
  counter.add();
  const std::int64_t size = args.out.cols();
  pool_of(queue).split(args.out.rows(), 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      const float* gate = args.gate_up.row<const float>(token);
      kernels().silu_mul(gate, gate + size, args.out.row(token), size);
    }
  });
}

void rope(vt::Queue* queue, const vt::RopeArgs& args) {
  reference::rope(queue, args);
}

void sample(vt::Queue* queue, const vt::SampleArgs& args) {
  if (!args.all_greedy) return reference::sample(queue, args);
  static vt::LaunchCounter counter("sample");
  counter.add();
  pool_of(queue).each(args.logits.rows(), [&](std::int64_t line) {
    args.token_ids[line] = kernels().argmax(args.logits.row<const float>(line), args.logits.cols());
  });
}

namespace {

// Ids by falling logit, then rising id. Logits that can't enter the list are skipped sixteen at a time.
void rank(const float* logits, std::int64_t vocab, std::int32_t* ids, std::int32_t count) {
  constexpr std::int64_t kRun = 16;
  std::int32_t kept = 0;
  const auto offer = [&](std::int64_t id) {
    if (kept == count && !(logits[id] > logits[ids[kept - 1]])) return;
    std::int32_t at = kept < count ? kept++ : count - 1;
    for (; at > 0 && logits[id] > logits[ids[at - 1]]; --at) ids[at] = ids[at - 1];
    ids[at] = static_cast<std::int32_t>(id);
  };
  std::int64_t id = 0;
  for (; id + kRun <= vocab; id += kRun) {
    if (kept == count) {
      const float bar = logits[ids[kept - 1]];
      int above = 0;
      for (std::int64_t i = 0; i < kRun; ++i) above += logits[id + i] > bar;
      if (above == 0) continue;
    }
    for (std::int64_t i = 0; i < kRun; ++i) offer(id + i);
  }
  for (; id < vocab; ++id) offer(id);
  std::fill(ids + kept, ids + count, -1);
}

}  // namespace

void logprobs(vt::Queue* queue, const vt::LogprobsArgs& args) {
  static vt::LaunchCounter counter("logprobs");
  counter.add();
  pool_of(queue).each(args.logits.rows(), [&](std::int64_t line) {
    const float* logits = args.logits.row<const float>(line);
    const std::int64_t vocab = args.logits.cols();
    std::int32_t* ids = args.top_ids + line * args.num_top;
    rank(logits, vocab, ids, args.num_top);
    const double total = logits[ids[0]] + std::log(kernels().sum_exp(logits, vocab, logits[ids[0]]));
    const auto logprob = [&](std::int64_t id) { return id < 0 ? -HUGE_VALF : static_cast<float>(logits[id] - total); };
    args.logprobs[line] = logprob(args.token_ids[line]);
    for (std::int32_t i = 0; i < args.num_top; ++i) args.top_logprobs[line * args.num_top + i] = logprob(ids[i]);
  });
}

}  // namespace cpu::fast

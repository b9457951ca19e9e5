// The step loop, and the only place where the backends differ: how the last tokens enter the next step.

#include "vt/runner.h"

#include <utility>

#include "vt/model.h"

#if defined(PORT_CUDA)
#include "vt/cuda/combine_tokens.h"
#include "vt/device_mirror.h"
#endif

namespace vt {
namespace {

#if defined(PORT_CUDA)
namespace device = cuda;
using Stream = cudaStream_t;

constexpr std::int32_t kBlockSize = 128;

void device_combine(std::int64_t* input_ids, const std::int32_t* idx_mapping, const std::int64_t* last_sampled_tokens,
                    const std::int32_t* query_start_loc, const std::int32_t* seq_lens, const std::int32_t* prefill_lens,
                    const std::int64_t* draft_tokens, const std::int32_t* cu_num_logits, std::int32_t num_requests,
                    std::int32_t num_drafts, std::int32_t block_size, Stream stream) {
  device::launch_combine_tokens(input_ids, idx_mapping, last_sampled_tokens, query_start_loc, seq_lens, prefill_lens,
                                draft_tokens, cu_num_logits, num_requests, num_drafts, block_size, stream);
}

void combine_without_drafts(Step& step) {
  device_combine(step.input_ids.data(), step.idx_mapping.data(), device_mirror(), step.query_start_loc.data(),
                 step.seq_lens.data(), step.prefill_lens.data(), nullptr, nullptr, step.requests(), 0, kBlockSize,
                 nullptr);
}

void combine_with_drafts(Step& step, const std::vector<std::int64_t>& drafts, const std::vector<std::int32_t>& logits) {
  device_combine(step.input_ids.data(), step.idx_mapping.data(), device_mirror(), step.query_start_loc.data(),
                 step.seq_lens.data(), step.prefill_lens.data(), drafts.data(), logits.data(), step.requests(),
                 static_cast<std::int32_t>(drafts.size()), kBlockSize, nullptr);
}

void combine_on_device(Step& step) {
  const std::vector<std::int64_t> drafts;  // speculation is off in this toy
  if (drafts.empty()) {
    combine_without_drafts(step);
  } else {
    combine_with_drafts(step, drafts, {});
  }
}
#endif

void combine_on_host(Step& step, const Platform& platform) {
  for (std::int32_t request = 0; request < step.requests(); ++request) {
    const auto at = static_cast<std::size_t>(request);
    if (step.seq_lens[at] <= step.prefill_lens[at]) continue;
    const auto end = static_cast<std::size_t>(step.query_start_loc[at + 1]);
    step.input_ids[end - 1] = platform.read_last_sampled(step.idx_mapping[at]);
  }
}

}  // namespace

Runner::Runner(std::unique_ptr<Platform> platform, RunnerOptions options)
    : platform_(std::move(platform)), options_(options) {}

Step Runner::prepare(const std::vector<Request>& requests) const {
  Step step;
  step.query_start_loc.push_back(0);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    const Request& request = requests[index];
    const auto begin = static_cast<std::size_t>(request.computed);
    step.input_ids.insert(step.input_ids.end(), request.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                          request.tokens.end());
    step.query_start_loc.push_back(static_cast<std::int32_t>(step.input_ids.size()));
    step.seq_lens.push_back(static_cast<std::int32_t>(request.tokens.size()));
    step.prefill_lens.push_back(request.prompt);
    step.idx_mapping.push_back(static_cast<std::int32_t>(index));
  }
  return step;
}

void Runner::fill_input_ids(Step& step, [[maybe_unused]] const std::vector<Request>& requests) {
#if defined(PORT_CUDA)
  if (options_.async_mirror && platform_->supports_async_sampled_token_readback()) {
    combine_on_device(step);
    return;
  }
#endif
  combine_on_host(step, *platform_);
}

void Runner::run_step(Step& step, std::vector<Request>& requests) {
  fill_input_ids(step, requests);
  for (std::size_t index = 0; index < requests.size(); ++index) {
    Request& request = requests[index];
    const auto last = static_cast<std::size_t>(step.query_start_loc[index + 1]) - 1;
    const std::int64_t before = request.tokens.size() > 1 ? request.tokens[request.tokens.size() - 2] : 0;
    const std::int64_t token = next_token(before, step.input_ids[last]);
    request.computed = static_cast<std::int32_t>(request.tokens.size());
    request.tokens.push_back(token);
    platform_->write_last_sampled(step.idx_mapping[index], token);
  }
}

std::vector<std::vector<std::int64_t>> Runner::generate(const std::vector<std::vector<std::int64_t>>& prompts) {
  std::vector<Request> requests;
  for (const auto& prompt : prompts) requests.push_back({prompt, 0, static_cast<std::int32_t>(prompt.size())});
  for (std::int32_t token = 0; token < options_.max_tokens; ++token) {
    Step step = prepare(requests);
    run_step(step, requests);
  }
  std::vector<std::vector<std::int64_t>> generated;
  for (const Request& request : requests) {
    generated.emplace_back(request.tokens.begin() + request.prompt, request.tokens.end());
  }
  return generated;
}

std::map<std::string, std::int64_t>& launch_counts() {
  static std::map<std::string, std::int64_t> counts;
  return counts;
}

}  // namespace vt

// See mirror.h.
#include "runner/mirror.h"

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "runner/staging.h"

namespace runner {
namespace {

constexpr std::array<std::string_view, 3> kNeeded{"combine", "scatter_last_sampled", "apply_last_sampled_ops"};

class DeviceMirror final : public Mirror {
 public:
  DeviceMirror(const model::Model& model, std::int32_t max_num_seqs)
      : model_(model),
        last_sampled_tokens_(model.device(), static_cast<std::size_t>(max_num_seqs) * sizeof(std::int32_t)) {
    for (std::int32_t row = 0; row < max_num_seqs; ++row) set(row, 0);
  }

  void set(std::int32_t row, std::int32_t token) override {
    std::erase_if(ops_, [row](const vt::LastSampledOp& op) { return op.row == row; });
    ops_.push_back({.row = row, .source = -1, .token = token});
  }

  void replay(vt::Queue* queue) override {
    if (ops_.empty()) return;
    Upload& upload = next_upload();
    upload.staging.clear();
    upload.staging.add(ops_);
    upload.staging.upload(queue, upload.device);
    model_.ops().apply_last_sampled_ops(queue, {.last_sampled_tokens = last_sampled_tokens_.as<std::int32_t>(),
                                                .ops = upload.device.as<const vt::LastSampledOp>(),
                                                .count = static_cast<std::int32_t>(ops_.size())});
    model_.device().platform().record(queue, upload.used.get());
    ops_.clear();
  }

  void splice(vt::Queue* queue, const SpliceInputs& inputs) override {
    model_.ops().combine(queue, {.input_ids = inputs.input_ids,
                                 .idx_mapping = inputs.idx_mapping,
                                 .last_sampled_tokens = last_sampled_tokens_.as<const std::int32_t>(),
                                 .query_start_loc = inputs.query_start_loc,
                                 .seq_lens = inputs.seq_lens,
                                 .prefill_len = inputs.prefill_len,
                                 .draft_tokens = nullptr,
                                 .draft_tokens_stride = 0,
                                 .cu_num_logits = nullptr,
                                 .num_reqs = inputs.num_reqs,
                                 .num_new_sampled_tokens = 1});
  }

  void scatter(vt::Queue* queue, const std::int64_t* token_ids, const std::int32_t* idx_mapping,
               std::int32_t count) override {
    model_.ops().scatter_last_sampled(queue, {.token_ids = token_ids,
                                              .idx_mapping = idx_mapping,
                                              .last_sampled_tokens = last_sampled_tokens_.as<std::int32_t>(),
                                              .count = count});
  }

 private:
  // Staged ops must stay as they are until the device has read them.
  struct Upload {
    Staging staging;
    vt::Buffer device;
    vt::EventHandle used;
  };

  Upload& next_upload() {
    const vt::OpenDevice& device = model_.device();
    if (!uploads_.empty() && device.platform().done(uploads_.front().used.get())) {
      uploads_.push_back(std::move(uploads_.front()));
      uploads_.pop_front();
    } else {
      uploads_.push_back({Staging(device), {}, vt::make_event(device)});
    }
    return uploads_.back();
  }

  const model::Model& model_;
  vt::Buffer last_sampled_tokens_;  // (max_num_seqs) int32
  std::vector<vt::LastSampledOp> ops_;
  std::deque<Upload> uploads_;  // oldest first
};

}  // namespace

std::unique_ptr<Mirror> make_mirror(const model::Model& model, std::int32_t max_num_seqs) {
  const vt::Backend& backend = model.device().backend();
  vt::require(backend, model.ops(), kNeeded, "the async device mirror");
  return std::make_unique<DeviceMirror>(model, max_num_seqs);
}

}  // namespace runner

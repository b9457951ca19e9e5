// Launches steps of the persistent batch over a paged KV cache.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/forward.h"
#include "runner/graphs.h"
#include "runner/kv_cache.h"
#include "runner/mirror.h"
#include "runner/sampler.h"

namespace runner {

struct Options {
  std::int64_t num_blocks;
  std::int64_t block_size = 16;
  std::int64_t max_num_seqs = 64;
  std::int64_t max_num_batched_tokens = 512;
  std::string kv_dtype = "auto";
  std::string attention_backend;  // empty: the first that can
  bool batch_invariant = false;
  std::string async_device_mirror = "auto";
};

struct PromptScores {
  std::int32_t row;
  std::int64_t start;
  std::vector<float> logprobs;         // (n)
  std::vector<std::int32_t> best_ids;  // (n, 2) best and second best
  std::vector<float> best_logprobs;    // (n, 2)
};

struct Result {
  struct Line {
    std::int32_t row;
    std::int64_t token_id;
    float logprob;
    std::int32_t runner_up_id;
    float runner_up_logprob;
    std::vector<std::int32_t> top_ids;  // (top_logprobs)
    std::vector<float> top_logprobs;
  };
  std::vector<Line> lines;
  std::vector<PromptScores> prompts;
};

// Memory and events that one step in flight occupies.
struct Slot {
  explicit Slot(const vt::OpenDevice& device)
      : inputs(device), extras(device), computed(vt::make_event(device)), copied(vt::make_event(device)) {}

  bool busy = false;
  Staging inputs;
  Staging extras;
  vt::Buffer staged;
  vt::Buffer output;
  vt::HostBuffer readback;
  vt::EventHandle computed;
  vt::EventHandle copied;
};

class Step {
 public:
  Step(Plan plan, OutputLayout layout, Slot& slot) : plan_(std::move(plan)), layout_(layout), slot_(&slot) {}

 private:
  friend class Runner;

  Plan plan_;
  OutputLayout layout_;
  std::vector<std::int32_t> num_top_;  // per line, what its request asked for
  Slot* slot_;                         // null once finished
  Result result_;
  std::exception_ptr error_;
};

class Runner {
 public:
  Runner(std::shared_ptr<const model::Model> model, const Options& options);
  ~Runner();

  const model::Model& model() const { return *model_; }
  std::size_t kv_bytes() const { return cache_.bytes(); }
  std::size_t kv_bytes_per_token() const { return cache_.bytes_per_token(); }
  bool mirror() const { return mirror_ != nullptr; }
  std::string attention_backend() const { return std::string(attention_->name); }
  std::int64_t block_size() const { return options_.block_size; }

  void add(std::int32_t row, std::span<const std::int32_t> tokens, const Sampling& sampling, std::int64_t num_prompt);
  void remove(std::int32_t row);
  void set_blocks(std::int32_t row, std::int64_t first, std::span<const std::int32_t> blocks);
  void copy_blocks(std::span<const std::int32_t> source, std::span<const std::int32_t> target);

  std::shared_ptr<Step> launch(const Scheduled& scheduled);
  bool done(const Step& step);
  const Result& wait(Step& step);

  // (2, block_size, kv_heads, head_dim): keys, then values.
  std::vector<float> read_kv(std::int64_t layer, std::int32_t block);

 private:
  Slot& free_slot();
  void collect();
  void finish(Step& step);
  void read(Step& step);
  void forward(const Plan& plan, Slot& slot, vt::Tensor& logits);
  void read_back(Slot& slot, const OutputLayout& layout);
  Bounds bounds() const;

  std::shared_ptr<const model::Model> model_;
  Options options_;
  std::int64_t max_len_;
  vt::DType kv_dtype_;
  const vt::AttentionBackend* attention_;
  KvCache cache_;
  vt::QueueHandle queue_;
  vt::QueueHandle readback_queue_;
  vt::Buffer inputs_;  // the step's arrays; graphs rely on its address
  std::unique_ptr<Mirror> mirror_;
  std::unique_ptr<model::Forward> forward_;
  std::unique_ptr<PenaltyTables> penalties_;
  std::unique_ptr<Sampler> sampler_;
  Graphs graphs_;
  Rows rows_;
  std::deque<Slot> slots_;
  std::vector<std::shared_ptr<Step>> in_flight_;
  std::mutex mutex_;
};

}  // namespace runner

// See runner.h.
#include "runner/runner.h"

#include <algorithm>
#include <utility>

#include "vt/half.h"

namespace runner {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 30;
constexpr std::int64_t kMinLogitRows = 64;

void require(const char* name, std::int64_t value, std::int64_t limit) {
  if (value >= 1 && value <= limit) return;
  throw vt::BadArgument(std::string(name) + " must lie in 1.." + std::to_string(limit) + ", not " +
                        std::to_string(value));
}

const Options& checked(const Options& options) {
  require("num_blocks", options.num_blocks, kMaxCount);
  require("block_size", options.block_size, 1024);
  require("max_num_seqs", options.max_num_seqs, 4096);
  require("max_num_batched_tokens", options.max_num_batched_tokens, 1 << 20);
  for (const char* known : {"auto", "on", "off"}) {
    if (options.async_device_mirror == known) return options;
  }
  throw vt::BadArgument("async_device_mirror must be auto, on or off, not '" + options.async_device_mirror + "'");
}

vt::DType cache_dtype(const model::Model& model, const std::string& name) {
  const vt::OpenDevice& device = model.device();
  if (name == "auto") {
    if (model.precision() == vt::Precision::reference) return vt::DType::F32;
    return device.platform().kv_dtype(device.get(), model.precision(), model.matrix_dtype());
  }
  for (const vt::DType known : {vt::DType::F32, vt::DType::F16, vt::DType::BF16}) {
    if (name == vt::name(known)) return known;
  }
  throw vt::BadArgument("kv_dtype must be auto, F32, F16 or BF16, not '" + name + "'");
}

vt::AttentionShape attention_shape(const model::Model& model, const Options& options, vt::DType kv_dtype,
                                   std::int64_t max_len) {
  const model::Config& config = model.config();
  const vt::OpenDevice& device = model.device();
  return {.heads = static_cast<std::int32_t>(config.num_heads),
          .kv_heads = static_cast<std::int32_t>(config.num_kv_heads),
          .head_dim = static_cast<std::int32_t>(config.head_dim),
          .block_size = static_cast<std::int32_t>(options.block_size),
          .activation_dtype = device.platform().activation_dtype(device.get(), model.precision(), model.matrix_dtype()),
          .kv_dtype = kv_dtype,
          .max_num_seqs = static_cast<std::int32_t>(options.max_num_seqs),
          .max_num_batched_tokens = static_cast<std::int32_t>(options.max_num_batched_tokens),
          .max_seq_len = static_cast<std::int32_t>(max_len)};
}

bool wants_mirror(const model::Model& model, const Options& options) {
  if (options.async_device_mirror == "off") return false;
  const vt::OpenDevice& device = model.device();
  const bool supported =
      device.platform().device_info(device.index()).capabilities.supports_async_sampled_token_readback;
  if (options.async_device_mirror == "on" && !supported) {
    throw vt::Error("async_device_mirror is on, but backend '" + std::string(device.backend().name) +
                    "' does not support reading sampled tokens back asynchronously");
  }
  return supported;
}

// A step's arrays can't take more than this: their addresses must not change once a graph was recorded.
std::size_t input_bytes(const Options& options, std::int64_t max_len) {
  const auto tokens = static_cast<std::size_t>(options.max_num_batched_tokens);
  const auto requests = static_cast<std::size_t>(options.max_num_seqs);
  const auto blocks = static_cast<std::size_t>((max_len + options.block_size - 1) / options.block_size);
  return tokens * 16 + (requests + 1) * 16 + requests * blocks * 4 + 16 * 64;
}

}  // namespace

Runner::Runner(std::shared_ptr<const model::Model> model, const Options& options)
    : model_(std::move(model)),
      options_(checked(options)),
      max_len_(std::min(model_->config().context_length, options.num_blocks * options.block_size)),
      kv_dtype_(cache_dtype(*model_, options.kv_dtype)),
      graphs_(model_->device(), static_cast<std::int32_t>(options.max_num_seqs)),
      rows_(static_cast<std::int32_t>(options.max_num_seqs), model_->config().vocab_size,
            model_->config().context_length, static_cast<std::int32_t>(options.num_blocks)) {
  const vt::OpenDevice& device = model_->device();
  const vt::AttentionShape shape = attention_shape(*model_, options_, kv_dtype_, max_len_);
  attention_ =
      &vt::choose_attention(device.backend(), device.get(), model_->precision(), shape, options_.attention_backend);
  if (wants_mirror(*model_, options_)) {
    mirror_ = make_mirror(*model_, static_cast<std::int32_t>(options_.max_num_seqs));
  }
  cache_ = KvCache(device, model_->config(), kv_dtype_, options_.num_blocks, options_.block_size);
  queue_ = vt::make_queue(device);
  readback_queue_ = vt::make_queue(device);
  inputs_ = vt::Buffer(device, input_bytes(options_, max_len_));
  const std::int64_t logit_rows = std::max(options_.max_num_seqs, kMinLogitRows);
  forward_ = std::make_unique<model::Forward>(
      *model_, *attention_, shape,
      model::Limits{.tokens = options_.max_num_batched_tokens, .logit_rows = logit_rows, .positions = max_len_},
      options_.batch_invariant);
  penalties_ = std::make_unique<PenaltyTables>(*model_, static_cast<std::int32_t>(options_.max_num_seqs));
  sampler_ = std::make_unique<Sampler>(*model_, *forward_, *penalties_, logit_rows);
}

Runner::~Runner() {
  // Kernels in flight still use this runner's memory. What they failed with no longer matters to anybody.
  try {
    model_->device().platform().synchronise(queue_.get());
    model_->device().platform().synchronise(readback_queue_.get());
  } catch (const std::exception&) {
  }
}

Bounds Runner::bounds() const {
  return {.max_num_batched_tokens = options_.max_num_batched_tokens,
          .max_len = max_len_,
          .block_size = options_.block_size,
          .vocab_size = model_->config().vocab_size};
}

void Runner::add(std::int32_t row, std::span<const std::int32_t> tokens, const Sampling& sampling,
                 std::int64_t num_prompt) {
  const std::lock_guard lock(mutex_);
  rows_.add(row, tokens, sampling, num_prompt);
  if (sampling.penalised()) penalties_->set(queue_.get(), row, rows_.used(row));
  if (mirror_) mirror_->set(row, tokens.back());
}

void Runner::remove(std::int32_t row) {
  const std::lock_guard lock(mutex_);
  rows_.remove(row);
  if (mirror_) mirror_->set(row, 0);
}

void Runner::set_blocks(std::int32_t row, std::int64_t first, std::span<const std::int32_t> blocks) {
  const std::lock_guard lock(mutex_);
  rows_.set_blocks(row, first, blocks);
}

void Runner::copy_blocks(std::span<const std::int32_t> source, std::span<const std::int32_t> target) {
  const std::lock_guard lock(mutex_);
  if (source.size() != target.size()) throw vt::BadArgument("source and target must have the same length");
  for (const std::int32_t block : source) rows_.require_block(block);
  for (const std::int32_t block : target) {
    rows_.require_block(block);
    if (std::find(source.begin(), source.end(), block) != source.end()) {
      throw vt::BadArgument("block " + std::to_string(block) + " is both source and target");
    }
  }
  if (source.empty()) return;
  Staging staging(model_->device());
  const std::size_t from = staging.add(std::vector<std::int32_t>(source.begin(), source.end()));
  const std::size_t to = staging.add(std::vector<std::int32_t>(target.begin(), target.end()));
  vt::Buffer staged;
  staging.upload(queue_.get(), staged);
  for (const vt::KvCache& layer : cache_.layers()) {
    model_->ops().copy_blocks(queue_.get(), {.cache = layer,
                                             .source = at<std::int32_t>(staged, from),
                                             .target = at<std::int32_t>(staged, to),
                                             .count = static_cast<std::int32_t>(source.size())});
  }
  model_->device().platform().synchronise(queue_.get());
}

Slot& Runner::free_slot() {
  for (Slot& slot : slots_) {
    if (!slot.busy) return slot;
  }
  return slots_.emplace_back(model_->device());
}

// Finishes what has to be known, or is known anyhow, before the next step is planned.
void Runner::collect() {
  for (const std::shared_ptr<Step>& step : in_flight_) {
    if (step->slot_ && (!mirror_ || model_->device().platform().done(step->slot_->copied.get()))) finish(*step);
  }
  std::erase_if(in_flight_, [](const std::shared_ptr<Step>& step) { return step->slot_ == nullptr; });
}

std::shared_ptr<Step> Runner::launch(const Scheduled& scheduled) {
  const std::lock_guard lock(mutex_);
  collect();
  Plan plan = make_plan(rows_, scheduled, bounds(), mirror());
  const OutputLayout layout = output_layout(plan, rows_);
  Slot& slot = free_slot();
  if (mirror_) mirror_->replay(queue_.get());
  ensure(model_->device(), queue_.get(), slot.output, layout.bytes());

  vt::Tensor logits;
  forward(plan, slot, logits);
  const std::int32_t* lines = sampler_->run(queue_.get(), rows_,
                                            {.plan = plan,
                                             .scheduled = scheduled,
                                             .layout = layout,
                                             .staging = slot.extras,
                                             .staged = slot.staged,
                                             .output = slot.output,
                                             .logits = logits});
  if (mirror_ && layout.lines > 0) {
    mirror_->scatter(queue_.get(), at<std::int64_t>(slot.output, layout.token_ids()), lines,
                     static_cast<std::int32_t>(layout.lines));
  }
  read_back(slot, layout);

  auto step = std::make_shared<Step>(std::move(plan), layout, slot);
  for (const SampledLine& line : step->plan_.sampled) {
    Row& row = rows_.used(line.row);
    step->num_top_.push_back(row.sampling.top_logprobs);
    row.tokens.push_back(kPending);
  }
  slot.busy = true;
  in_flight_.push_back(step);
  return step;
}

// Uploads the step's arrays and runs the model; a decode step that is replayed from a graph brings its logits with it.
void Runner::forward(const Plan& plan, Slot& slot, vt::Tensor& logits) {
  const std::int32_t bucket = graphs_.bucket(plan.num_reqs());
  const bool replayed = graphs_.available() && plan.decode_only() && bucket <= options_.max_num_batched_tokens;
  Plan padded = plan;
  if (replayed) {
    padded.pad(bucket, static_cast<std::int32_t>((max_len_ + options_.block_size - 1) / options_.block_size));
    padded.max_seq_len = static_cast<std::int32_t>(max_len_);
  }
  Staging& staging = slot.inputs;
  staging.clear();
  const std::size_t input_ids = staging.add(padded.input_ids);
  const std::size_t positions = staging.add(padded.positions);
  const std::size_t slot_mapping = staging.add(padded.slot_mapping);
  const std::size_t query_start_loc = staging.add(padded.query_start_loc);
  const std::size_t seq_lens = staging.add(padded.seq_lens);
  const std::size_t idx_mapping = staging.add(padded.idx_mapping);
  const std::size_t prefill_len = staging.add(padded.prefill_len);
  const std::size_t block_table = staging.add(padded.block_table);
  staging.upload(queue_.get(), inputs_);

  const model::StepInputs inputs{.input_ids = at<std::int32_t>(inputs_, input_ids),
                                 .positions = at<std::int32_t>(inputs_, positions),
                                 .slot_mapping = at<std::int64_t>(inputs_, slot_mapping),
                                 .query_start_loc = at<std::int32_t>(inputs_, query_start_loc),
                                 .seq_lens = at<std::int32_t>(inputs_, seq_lens),
                                 .block_table = at<std::int32_t>(inputs_, block_table),
                                 .block_table_stride = padded.block_table_stride,
                                 .num_tokens = padded.num_tokens(),
                                 .num_reqs = padded.num_reqs(),
                                 .max_query_len = padded.max_query_len,
                                 .max_seq_len = padded.max_seq_len};
  if (mirror_) {
    mirror_->splice(queue_.get(), {.input_ids = at<std::int32_t>(inputs_, input_ids),
                                   .idx_mapping = at<std::int32_t>(inputs_, idx_mapping),
                                   .query_start_loc = inputs.query_start_loc,
                                   .seq_lens = inputs.seq_lens,
                                   .prefill_len = at<std::int32_t>(inputs_, prefill_len),
                                   .num_reqs = plan.num_reqs()});
  }
  if (!replayed) return forward_->hidden(queue_.get(), inputs, cache_.layers());
  graphs_.run(queue_.get(), bucket, [&] { forward_->decode(queue_.get(), inputs, cache_.layers()); });
  logits = forward_->logits_view(bucket);
}

void Runner::read_back(Slot& slot, const OutputLayout& layout) {
  const vt::OpenDevice& device = model_->device();
  const vt::Platform& platform = device.platform();
  if (slot.readback.bytes() < layout.bytes()) slot.readback = vt::HostBuffer(device, layout.bytes());
  platform.record(queue_.get(), slot.computed.get());
  platform.wait(readback_queue_.get(), slot.computed.get());
  if (layout.bytes() > 0)
    platform.copy(readback_queue_.get(), slot.readback.data(), slot.output.data(), layout.bytes());
  platform.record(readback_queue_.get(), slot.copied.get());
}

bool Runner::done(const Step& step) {
  const std::lock_guard lock(mutex_);
  return step.slot_ == nullptr || model_->device().platform().done(step.slot_->copied.get());
}

const Result& Runner::wait(Step& step) {
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    slot = step.slot_;
  }
  if (slot) {
    // Without the lock, so that the next step can be launched meanwhile. What fails here fails again in finish.
    try {
      model_->device().platform().synchronise_event(slot->copied.get());
    } catch (const std::exception&) {
    }
    const std::lock_guard lock(mutex_);
    finish(step);
  }
  if (step.error_) std::rethrow_exception(step.error_);
  return step.result_;
}

void Runner::finish(Step& step) {
  if (!step.slot_) return;
  try {
    model_->device().platform().synchronise_event(step.slot_->copied.get());
    read(step);
  } catch (...) {
    step.error_ = std::current_exception();
  }
  step.slot_->busy = false;
  step.slot_ = nullptr;
}

// Fills in the result, and the tokens that were pending.
void Runner::read(Step& step) {
  const OutputLayout& layout = step.layout_;
  const auto* base = static_cast<const char*>(step.slot_->readback.data());
  const auto* token_ids = reinterpret_cast<const std::int64_t*>(base + layout.token_ids());
  const auto* logprobs = reinterpret_cast<const float*>(base + layout.logprobs());
  for (std::size_t i = 0; i < step.plan_.sampled.size(); ++i) {
    const SampledLine& line = step.plan_.sampled[i];
    const auto* top_ids =
        reinterpret_cast<const std::int32_t*>(base + layout.top_ids()) + i * static_cast<std::size_t>(layout.num_top);
    const auto* top =
        reinterpret_cast<const float*>(base + layout.top_logprobs()) + i * static_cast<std::size_t>(layout.num_top);
    const int other = top_ids[0] == token_ids[i] ? 1 : 0;
    step.result_.lines.push_back({.row = line.row,
                                  .token_id = token_ids[i],
                                  .logprob = logprobs[i],
                                  .runner_up_id = top_ids[other],
                                  .runner_up_logprob = top[other],
                                  .top_ids = {top_ids, top_ids + step.num_top_[i]},
                                  .top_logprobs = {top, top + step.num_top_[i]}});
    Row* row = rows_.find(line.row, line.generation);
    if (row) row->tokens[static_cast<std::size_t>(line.position)] = static_cast<std::int32_t>(token_ids[i]);
  }
  const auto* scored = reinterpret_cast<const float*>(base + layout.prompt_logprobs());
  const auto* best_ids = reinterpret_cast<const std::int32_t*>(base + layout.prompt_ids());
  const auto* best = reinterpret_cast<const float*>(base + layout.prompt_best());
  for (const PromptSpan& span : step.plan_.prompt_spans) {
    const auto count = static_cast<std::ptrdiff_t>(span.token_ids.size());
    step.result_.prompts.push_back({.row = span.row,
                                    .start = span.start,
                                    .logprobs = {scored, scored + count},
                                    .best_ids = {best_ids, best_ids + 2 * count},
                                    .best_logprobs = {best, best + 2 * count}});
    scored += count;
    best_ids += 2 * count;
    best += 2 * count;
  }
}

std::vector<float> Runner::read_kv(std::int64_t layer, std::int32_t block) {
  const std::lock_guard lock(mutex_);
  if (layer < 0 || layer >= model_->config().num_layers) {
    throw vt::BadArgument("layer must lie in 0.." + std::to_string(model_->config().num_layers - 1) + ", not " +
                          std::to_string(layer));
  }
  rows_.require_block(block);
  const vt::Platform& platform = model_->device().platform();
  const vt::KvCache& cache = cache_.layers()[static_cast<std::size_t>(layer)];
  std::vector<float> result;
  for (const bool is_key : {true, false}) {
    const vt::Tensor& tensor = is_key ? cache.keys : cache.values;
    const std::int64_t heads = tensor.shape[1];
    const std::int64_t size = tensor.shape[2];
    const std::int64_t dim = tensor.shape[3];
    std::vector<char> bytes(static_cast<std::size_t>(tensor.stride[0]));
    platform.copy(queue_.get(), bytes.data(), tensor.row<char>(block), bytes.size());
    platform.synchronise(queue_.get());
    for (std::int64_t token = 0; token < size; ++token) {
      for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t d = 0; d < dim; ++d) {
          const std::int64_t run = is_key ? attention_->key_run : 0;
          const std::int64_t inside = run ? token / run * run * dim + d * run + token % run : token * dim + d;
          result.push_back(vt::load_as_float(tensor.dtype, bytes.data(), head * size * dim + inside));
        }
      }
    }
  }
  return result;
}

}  // namespace runner

// See sampler.h.
#include "runner/sampler.h"

#include <algorithm>

namespace runner {

// Offsets into the staged buffer.
struct Sampler::Offsets {
  std::size_t indices = 0;      // (N) int32 token of the step
  std::size_t idx_mapping = 0;  // (N) int32 row
  bool in_order = false;        // line i is token i: no gather
  bool all_greedy = true;
  std::size_t temperature = 0, top_k = 0, top_p = 0, min_p = 0, seed = 0, index = 0;
  bool biased = false;
  std::size_t bias_start = 0, bias_ids = 0, bias_values = 0;
  bool masked = false;
  std::size_t allowed = 0;
  bool penalised = false;
  std::size_t repetition = 0, presence = 0, frequency = 0, counted = 0;
  std::size_t prompt_indices = 0;  // (P) int32
  std::size_t prompt_tokens = 0;   // (P) int64
};

OutputLayout output_layout(const Plan& plan, Rows& rows) {
  OutputLayout layout{.lines = static_cast<std::int64_t>(plan.sampled.size()), .num_top = 2, .prompt_positions = 0};
  for (const SampledLine& line : plan.sampled) {
    layout.num_top = std::max(layout.num_top, rows.used(line.row).sampling.top_logprobs);
  }
  for (const PromptSpan& span : plan.prompt_spans) {
    layout.prompt_positions += static_cast<std::int64_t>(span.token_ids.size());
  }
  return layout;
}

Sampler::Offsets Sampler::stage(Rows& rows, const Step& step) {
  std::vector<std::int32_t> indices, idx_mapping, top_k, prompt_indices;
  std::vector<float> temperature, top_p, min_p;
  std::vector<std::uint64_t> seed;
  std::vector<std::int64_t> index, prompt_tokens;
  Offsets offsets;
  offsets.in_order = true;
  for (const SampledLine& line : step.plan.sampled) {
    const Row& row = rows.used(line.row);
    offsets.in_order &= line.token_index == static_cast<std::int32_t>(indices.size());
    indices.push_back(line.token_index);
    idx_mapping.push_back(line.row);
    temperature.push_back(row.sampling.temperature);
    top_k.push_back(row.sampling.top_k);
    top_p.push_back(row.sampling.top_p);
    min_p.push_back(row.sampling.min_p);
    seed.push_back(row.sampling.seed);
    index.push_back(line.position - row.num_prompt);
    offsets.all_greedy &= row.sampling.temperature == 0.0f;
  }
  for (const PromptSpan& span : step.plan.prompt_spans) {
    for (std::size_t i = 0; i < span.token_ids.size(); ++i) {
      prompt_indices.push_back(span.token_index + static_cast<std::int32_t>(i));
      prompt_tokens.push_back(span.token_ids[i]);
    }
  }
  step.staging.clear();
  offsets.indices = step.staging.add(indices);
  offsets.idx_mapping = step.staging.add(idx_mapping);
  if (!offsets.all_greedy) {
    offsets.temperature = step.staging.add(temperature);
    offsets.top_k = step.staging.add(top_k);
    offsets.top_p = step.staging.add(top_p);
    offsets.min_p = step.staging.add(min_p);
    offsets.seed = step.staging.add(seed);
    offsets.index = step.staging.add(index);
  }
  offsets.prompt_indices = step.staging.add(prompt_indices);
  offsets.prompt_tokens = step.staging.add(prompt_tokens);
  stage_processors(rows, step, offsets);
  return offsets;
}

void Sampler::stage_processors(Rows& rows, const Step& step, Offsets& offsets) {
  std::vector<std::int32_t> bias_start{0}, bias_ids, counted;
  std::vector<float> bias_values, repetition, presence, frequency;
  std::vector<std::uint32_t> allowed;
  const auto words = static_cast<std::size_t>((model_.config().vocab_size + 31) / 32);
  for (const SampledLine& line : step.plan.sampled) {
    const Sampling& sampling = rows.used(line.row).sampling;
    for (const auto& [id, bias] : sampling.logit_bias) {
      bias_ids.push_back(id);
      bias_values.push_back(bias);
    }
    bias_start.push_back(static_cast<std::int32_t>(bias_ids.size()));
    repetition.push_back(sampling.repetition_penalty);
    presence.push_back(sampling.presence_penalty);
    frequency.push_back(sampling.frequency_penalty);
    counted.push_back(sampling.penalised() ? line.row : -1);
    offsets.penalised |= sampling.penalised();
    const auto mask = step.scheduled.allowed.find(line.row);
    offsets.masked |= mask != step.scheduled.allowed.end();
    if (mask != step.scheduled.allowed.end()) {
      allowed.insert(allowed.end(), mask->second.begin(), mask->second.end());
    } else if (!step.scheduled.allowed.empty()) {
      allowed.insert(allowed.end(), words, ~0u);
    }
  }
  offsets.biased = !bias_ids.empty();
  if (offsets.biased) {
    offsets.bias_start = step.staging.add(bias_start);
    offsets.bias_ids = step.staging.add(bias_ids);
    offsets.bias_values = step.staging.add(bias_values);
  }
  if (offsets.masked) offsets.allowed = step.staging.add(allowed);
  if (offsets.penalised) {
    offsets.repetition = step.staging.add(repetition);
    offsets.presence = step.staging.add(presence);
    offsets.frequency = step.staging.add(frequency);
    offsets.counted = step.staging.add(counted);
  }
}

vt::Tensor Sampler::process(vt::Queue* queue, const vt::Tensor& logits, const Step& step, const Offsets& offsets) {
  if (!offsets.biased && !offsets.masked && !offsets.penalised) return logits;
  const std::size_t bytes = static_cast<std::size_t>(logits.size()) * sizeof(float);
  ensure(model_.device(), queue, processed_, bytes);
  const vt::Tensor out = vt::make_tensor(processed_.data(), vt::DType::F32, {logits.rows(), logits.cols()});
  const vt::Buffer& staged = step.staged;
  model_.ops().logits_processors(queue,
                                 {.logits = logits,
                                  .idx_mapping = at<std::int32_t>(staged, offsets.idx_mapping),
                                  .bias_start = offsets.biased ? at<std::int32_t>(staged, offsets.bias_start) : nullptr,
                                  .bias_ids = at<std::int32_t>(staged, offsets.bias_ids),
                                  .bias_values = at<float>(staged, offsets.bias_values),
                                  .allowed = offsets.masked ? at<std::uint32_t>(staged, offsets.allowed) : nullptr,
                                  .repetition = offsets.penalised ? at<float>(staged, offsets.repetition) : nullptr,
                                  .presence = at<float>(staged, offsets.presence),
                                  .frequency = at<float>(staged, offsets.frequency),
                                  .prompt_mask = penalties_.prompt_mask(),
                                  .output_counts = penalties_.output_counts(),
                                  .out = out});
  return out;
}

void Sampler::sample(vt::Queue* queue, const vt::Tensor& logits, const Step& step, const Offsets& offsets) {
  const vt::Buffer& staged = step.staged;
  auto* token_ids = at<std::int64_t>(step.output, step.layout.token_ids());
  const bool greedy = offsets.all_greedy;
  model_.ops().sample(queue, {.logits = process(queue, logits, step, offsets),
                              .temperature = greedy ? nullptr : at<float>(staged, offsets.temperature),
                              .top_k = greedy ? nullptr : at<std::int32_t>(staged, offsets.top_k),
                              .top_p = greedy ? nullptr : at<float>(staged, offsets.top_p),
                              .min_p = greedy ? nullptr : at<float>(staged, offsets.min_p),
                              .seed = greedy ? nullptr : at<std::uint64_t>(staged, offsets.seed),
                              .index = greedy ? nullptr : at<std::int64_t>(staged, offsets.index),
                              .all_greedy = greedy,
                              .token_ids = token_ids});
  model_.ops().logprobs(queue, {.logits = logits,
                                .token_ids = token_ids,
                                .num_top = step.layout.num_top,
                                .logprobs = at<float>(step.output, step.layout.logprobs()),
                                .top_ids = at<std::int32_t>(step.output, step.layout.top_ids()),
                                .top_logprobs = at<float>(step.output, step.layout.top_logprobs())});
  if (!offsets.penalised) return;
  model_.ops().count_tokens(queue, {.token_ids = token_ids,
                                    .idx_mapping = at<std::int32_t>(staged, offsets.counted),
                                    .count = static_cast<std::int32_t>(step.layout.lines),
                                    .output_counts = penalties_.output_counts(),
                                    .vocab_size = model_.config().vocab_size});
}

void Sampler::score_prompts(vt::Queue* queue, const Step& step, const Offsets& offsets) {
  const OutputLayout& layout = step.layout;
  for (std::int64_t first = 0; first < layout.prompt_positions; first += logit_rows_) {
    const std::int64_t count = std::min(logit_rows_, layout.prompt_positions - first);
    const vt::Tensor logits =
        forward_.logits(queue, at<std::int32_t>(step.staged, offsets.prompt_indices) + first, count);
    model_.ops().logprobs(queue, {.logits = logits,
                                  .token_ids = at<std::int64_t>(step.staged, offsets.prompt_tokens) + first,
                                  .num_top = 2,
                                  .logprobs = at<float>(step.output, layout.prompt_logprobs()) + first,
                                  .top_ids = at<std::int32_t>(step.output, layout.prompt_ids()) + 2 * first,
                                  .top_logprobs = at<float>(step.output, layout.prompt_best()) + 2 * first});
  }
}

const std::int32_t* Sampler::run(vt::Queue* queue, Rows& rows, const Step& step) {
  const Offsets offsets = stage(rows, step);
  step.staging.upload(queue, step.staged);
  if (step.layout.lines > 0) {
    vt::Tensor logits = step.logits;
    if (logits.empty()) {
      const auto* indices = offsets.in_order ? nullptr : at<std::int32_t>(step.staged, offsets.indices);
      logits = forward_.logits(queue, indices, step.layout.lines);
    }
    sample(queue, vt::slice_rows(logits, 0, step.layout.lines), step, offsets);
  }
  score_prompts(queue, step, offsets);
  return at<std::int32_t>(step.staged, offsets.idx_mapping);
}

}  // namespace runner

// See forward.h.
#include "model/forward.h"

#include <cmath>

namespace model {
namespace {

// Empty where a product has more parts than decode_step takes.
std::vector<vt::DecodeLayer> decode_layers(const Model& model) {
  std::vector<vt::DecodeLayer> layers;
  if (!model.ops().decode_step) return layers;
  for (const Layer& layer : model.layers()) {
    const bool whole = layer.qkv.parts.size() == 1 && layer.output.parts.size() == 1 && !layer.output.bias &&
                       layer.gate_up.parts.size() == 2 && layer.down.parts.size() == 1;
    if (!whole) return {};
    layers.push_back({.attn_norm = layer.attn_norm.tensor(),
                      .qkv = layer.qkv.parts[0].weight.prepared(),
                      .qkv_bias = layer.qkv.bias.tensor(),
                      .q_norm = layer.q_norm.tensor(),
                      .k_norm = layer.k_norm.tensor(),
                      .output = layer.output.parts[0].weight.prepared(),
                      .ffn_norm = layer.ffn_norm.tensor(),
                      .gate = layer.gate_up.parts[0].weight.prepared(),
                      .up = layer.gate_up.parts[1].weight.prepared(),
                      .down = layer.down.parts[0].weight.prepared(),
                      .cache = {}});
  }
  return layers;
}

}  // namespace

Forward::Forward(const Model& model, const vt::AttentionBackend& attention, const vt::AttentionShape& shape,
                 const Limits& limits, bool batch_invariant)
    : model_(model),
      decode_layers_(decode_layers(model)),
      attention_(attention),
      batch_invariant_(batch_invariant),
      dtype_(shape.activation_dtype) {
  const Config& config = model.config();
  const vt::OpenDevice& device = model.device();
  const auto make = [&](std::int64_t rows, std::int64_t width, vt::DType dtype) {
    return vt::Buffer(device, static_cast<std::size_t>(rows * vt::bytes_for(dtype, width)));
  };
  const std::int64_t attention_width = config.num_heads * config.head_dim;
  residual_ = make(limits.tokens, config.hidden_size, vt::DType::F32);
  normed_ = make(limits.tokens, config.hidden_size, dtype_);
  delta_ = make(limits.tokens, config.hidden_size, dtype_);
  qkv_ = make(limits.tokens, attention_width + 2 * config.num_kv_heads * config.head_dim, dtype_);
  mixed_ = make(limits.tokens, attention_width, dtype_);
  if (!model.layers()[0].fused_silu) gate_up_ = make(limits.tokens, 2 * config.intermediate_size, dtype_);
  ffn_ = make(limits.tokens, config.intermediate_size, dtype_);
  gathered_ = make(limits.logit_rows, config.hidden_size, dtype_);
  logits_ = make(limits.logit_rows, config.vocab_size, vt::DType::F32);
  cos_sin_ = make(limits.positions, config.head_dim, vt::DType::F32);
  if (const std::size_t bytes = attention.workspace_bytes(device.get(), shape)) workspace_ = vt::Buffer(device, bytes);

  const std::vector<float> table = cos_sin_table(model.frequencies(), limits.positions);
  const vt::QueueHandle queue = vt::make_queue(device);
  device.platform().copy(queue.get(), cos_sin_.data(), table.data(), table.size() * sizeof(float));
  device.platform().synchronise(queue.get());
}

vt::Tensor Forward::activation(const vt::Buffer& buffer, std::int64_t tokens, std::int64_t width) const {
  return vt::make_tensor(buffer.data(), dtype_, {tokens, width});
}

void Forward::embed(vt::Queue* queue, const StepInputs& inputs) {
  model_.ops().embedding(queue, {.ids = inputs.input_ids,
                                 .weight = model_.embedding().prepared(),
                                 .out = vt::make_tensor(residual_.data(), vt::DType::F32,
                                                        {inputs.num_tokens, model_.config().hidden_size})});
}

void Forward::decode(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache) {
  embed(queue, inputs);
  if (decode_at_once(queue, inputs, cache)) return;
  layers(queue, inputs, cache);
  logits(queue, nullptr, inputs.num_tokens);
}

bool Forward::decode_at_once(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache) {
  if (decode_layers_.empty() || batch_invariant_ || attention_.key_run != 0) return false;
  const Config& config = model_.config();
  std::vector<vt::DecodeLayer> layers = decode_layers_;
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].cache = cache[i];
  return model_.ops().decode_step(
      queue, {.layers = layers,
              .residual = vt::make_tensor(residual_.data(), vt::DType::F32, {inputs.num_tokens, config.hidden_size}),
              .output_norm = model_.output_norm().tensor(),
              .head = model_.head().prepared(),
              .eps = config.rms_norm_eps,
              .scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim)),
              .positions = inputs.positions,
              .cos_sin = cos_sin_.as<const float>(),
              .interleaved = config.rope_interleaved,
              .slot_mapping = inputs.slot_mapping,
              .block_table = inputs.block_table,
              .seq_lens = inputs.seq_lens,
              .block_table_stride = inputs.block_table_stride,
              .logits = logits_view(inputs.num_tokens)});
}

void Forward::hidden(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache) {
  embed(queue, inputs);
  layers(queue, inputs, cache);
}

void Forward::layers(vt::Queue* queue, const StepInputs& inputs, std::span<const vt::KvCache> cache) {
  for (std::size_t i = 0; i < model_.layers().size(); ++i) {
    layer(queue, model_.layers()[i], inputs, cache[i], i == 0);
  }
  norm(queue, model_.output_norm(), inputs.num_tokens, true);
}

void Forward::layer(vt::Queue* queue, const Layer& layer, const StepInputs& inputs, const vt::KvCache& cache,
                    bool first) {
  norm(queue, layer.attn_norm, inputs.num_tokens, !first);
  attend(queue, layer, inputs, cache);
  norm(queue, layer.ffn_norm, inputs.num_tokens, true);
  feed_forward(queue, layer, inputs.num_tokens);
}

// normed = norm(residual), after adding what the last block left in delta.
void Forward::norm(vt::Queue* queue, const Weight& weight, std::int64_t tokens, bool add) {
  const std::int64_t width = model_.config().hidden_size;
  model_.ops().rms_norm(queue, {.x = add ? activation(delta_, tokens, width) : vt::Tensor{},
                                .residual = vt::make_tensor(residual_.data(), vt::DType::F32, {tokens, width}),
                                .weight = weight.tensor(),
                                .out = activation(normed_, tokens, width),
                                .eps = model_.config().rms_norm_eps});
}

void Forward::head_norm(vt::Queue* queue, const Weight& weight, const vt::Tensor& heads) {
  model_.ops().rms_norm(
      queue,
      {.x = heads, .residual = {}, .weight = weight.tensor(), .out = heads, .eps = model_.config().rms_norm_eps});
}

void Forward::attend(vt::Queue* queue, const Layer& layer, const StepInputs& inputs, const vt::KvCache& cache) {
  const Config& config = model_.config();
  const std::int64_t tokens = inputs.num_tokens;
  const std::int64_t q_size = config.num_heads * config.head_dim;
  const std::int64_t kv_size = config.num_kv_heads * config.head_dim;
  const vt::Tensor qkv = activation(qkv_, tokens, q_size + 2 * kv_size);
  multiply(queue, layer.qkv, activation(normed_, tokens, config.hidden_size), qkv);

  const vt::Tensor q = vt::split_heads(vt::slice_cols(qkv, 0, q_size), config.head_dim);
  const vt::Tensor k = vt::split_heads(vt::slice_cols(qkv, q_size, kv_size), config.head_dim);
  const vt::Tensor v = vt::split_heads(vt::slice_cols(qkv, q_size + kv_size, kv_size), config.head_dim);
  place(queue, layer, inputs, cache, q, k, v);
  const vt::Tensor mixed = activation(mixed_, tokens, q_size);
  attention_.attention(queue, {.q = q,
                               .cache = cache,
                               .block_table = inputs.block_table,
                               .query_start_loc = inputs.query_start_loc,
                               .seq_lens = inputs.seq_lens,
                               .block_table_stride = inputs.block_table_stride,
                               .num_reqs = inputs.num_reqs,
                               .max_query_len = inputs.max_query_len,
                               .max_seq_len = inputs.max_seq_len,
                               .scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim)),
                               .out = vt::split_heads(mixed, config.head_dim),
                               .workspace = workspace_.data(),
                               .batch_invariant = batch_invariant_});
  multiply(queue, layer.output, mixed, activation(delta_, tokens, config.hidden_size));
}

// Rotates q and puts k and v into the cache.
void Forward::place(vt::Queue* queue, const Layer& layer, const StepInputs& inputs, const vt::KvCache& cache,
                    const vt::Tensor& q, const vt::Tensor& k, const vt::Tensor& v) {
  const Config& config = model_.config();
  if (attention_.rope_kv_write) {
    attention_.rope_kv_write(queue, {.q = q,
                                     .k = k,
                                     .v = v,
                                     .q_norm = layer.q_norm.tensor(),
                                     .k_norm = layer.k_norm.tensor(),
                                     .eps = config.rms_norm_eps,
                                     .positions = inputs.positions,
                                     .cos_sin = cos_sin_.as<const float>(),
                                     .interleaved = config.rope_interleaved,
                                     .slot_mapping = inputs.slot_mapping,
                                     .cache = cache});
    return;
  }
  if (layer.q_norm) head_norm(queue, layer.q_norm, q);
  if (layer.k_norm) head_norm(queue, layer.k_norm, k);
  model_.ops().rope(queue, {.q = q,
                            .k = k,
                            .positions = inputs.positions,
                            .cos_sin = cos_sin_.as<const float>(),
                            .interleaved = config.rope_interleaved});
  attention_.kv_write(queue, {.k = k, .v = v, .slot_mapping = inputs.slot_mapping, .cache = cache});
}

void Forward::feed_forward(vt::Queue* queue, const Layer& layer, std::int64_t tokens) {
  const Config& config = model_.config();
  const vt::Tensor normed = activation(normed_, tokens, config.hidden_size);
  const vt::Tensor ffn = activation(ffn_, tokens, config.intermediate_size);
  if (layer.fused_silu) {
    model_.ops().matmul_silu_mul(queue, {.x = normed,
                                         .gate = layer.gate_up.parts[0].weight.prepared(),
                                         .up = layer.gate_up.parts[1].weight.prepared(),
                                         .out = ffn,
                                         .batch_invariant = batch_invariant_});
  } else {
    const vt::Tensor gate_up = activation(gate_up_, tokens, 2 * config.intermediate_size);
    multiply(queue, layer.gate_up, normed, gate_up);
    model_.ops().silu_mul(queue, {.gate_up = gate_up, .out = ffn});
  }
  multiply(queue, layer.down, ffn, activation(delta_, tokens, config.hidden_size));
}

void Forward::multiply(vt::Queue* queue, const Linear& linear, const vt::Tensor& x, const vt::Tensor& out) {
  for (const Linear::Part& part : linear.parts) {
    const std::int64_t outputs = part.weight.tensor().rows();
    vt::Tensor bias;
    if (linear.bias) bias = vt::make_tensor(linear.bias.tensor().as<float>() + part.first, vt::DType::F32, {outputs});
    model_.ops().matmul(queue, {.x = x,
                                .weight = part.weight.prepared(),
                                .bias = bias,
                                .out = vt::slice_cols(out, part.first, outputs),
                                .batch_invariant = batch_invariant_});
  }
}

vt::Tensor Forward::logits_view(std::int64_t count) const {
  return vt::make_tensor(logits_.data(), vt::DType::F32, {count, model_.config().vocab_size});
}

vt::Tensor Forward::logits(vt::Queue* queue, const std::int32_t* indices, std::int64_t count) {
  const Config& config = model_.config();
  vt::Tensor states = activation(normed_, count, config.hidden_size);
  if (indices) {
    const vt::Tensor picked = activation(gathered_, count, config.hidden_size);
    model_.ops().gather_rows(queue, {.x = states, .indices = indices, .out = picked});
    states = picked;
  }
  const vt::Tensor out = logits_view(count);
  model_.ops().matmul(
      queue,
      {.x = states, .weight = model_.head().prepared(), .bias = {}, .out = out, .batch_invariant = batch_invariant_});
  return out;
}

}  // namespace model

// See loader.h.
#include "model/loader.h"

#include <algorithm>

namespace model {
namespace {

template <typename Shape>
std::string text(const Shape& shape) {
  std::string list;
  for (const std::int64_t extent : shape) list += (list.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + list + ")";
}

// The platform takes vectors as (size, 1).
vt::Tensor as_column(const vt::Tensor& vector) {
  return vt::make_tensor(vector.data, vector.dtype, {vector.shape[0], 1});
}

}  // namespace

vt::Tensor Loader::take(const std::string& name, std::initializer_list<std::int64_t> shape) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw vt::Error("tensor '" + name + "' is missing");
  const vt::Tensor tensor = found->second;
  const std::span<const std::int64_t> given(tensor.shape, static_cast<std::size_t>(tensor.rank));
  if (!std::equal(given.begin(), given.end(), shape.begin(), shape.end())) {
    throw vt::Error("tensor '" + name + "' has shape " + text(given) + ", the model's sizes ask for " + text(shape));
  }
  tensors_.erase(found);
  return tensor;
}

Weight Loader::prepare(std::span<const vt::Tensor> parts, vt::WeightUse use) {
  const vt::OpenDevice& device = model_.device_;
  vt::PreparedWeight prepared = device.platform().prepare_weight(device.get(), parts, use, model_.precision_);
  if (use == vt::WeightUse::vector) {
    prepared.tensor = vt::make_tensor(prepared.tensor.data, vt::DType::F32, {prepared.tensor.rows()});
  }
  Weight weight(device, prepared);
  model_.weight_bytes_ += weight.prepared().bytes;
  model_.huge_pages_ |= weight.prepared().huge_pages;
  return weight;
}

Weight Loader::vector(const std::string& name, std::int64_t size) {
  const vt::Tensor tensor = take(name, {size});
  if (vt::is_quantised(tensor.dtype)) throw vt::Error("vector '" + name + "' must not be quantised");
  const vt::Tensor column = as_column(tensor);
  return prepare({&column, 1}, vt::WeightUse::vector);
}

Weight Loader::matrix(const std::string& name, std::int64_t rows, std::int64_t cols, vt::WeightUse use) {
  const vt::Tensor tensor = take(name, {rows, cols});
  return prepare({&tensor, 1}, use);
}

// Neighbours of one format become one weight.
Linear Loader::linear(const std::vector<Named>& parts, std::int64_t inputs, bool merge) {
  Linear result;
  std::vector<vt::Tensor> run;
  std::int64_t first = 0;
  std::int64_t rows = 0;
  const auto flush = [&] {
    if (run.empty()) return;
    result.parts.push_back({.weight = prepare(run, vt::WeightUse::matmul), .first = first});
    first += rows;
    rows = 0;
    run.clear();
  };
  for (const Named& part : parts) {
    const vt::Tensor tensor = take(part.name + ".weight", {part.rows, inputs});
    if (!merge || (!run.empty() && run[0].dtype != tensor.dtype)) flush();
    run.push_back(tensor);
    rows += part.rows;
  }
  flush();
  return result;
}

Weight Loader::biases(const std::vector<Named>& parts) {
  std::vector<vt::Tensor> columns;
  for (const Named& part : parts) {
    const vt::Tensor bias = take(part.name + ".bias", {part.rows});
    if (bias.dtype != vt::DType::F32) throw vt::Error("'" + part.name + ".bias' must be F32");
    columns.push_back(as_column(bias));
  }
  return prepare(columns, vt::WeightUse::vector);
}

Layer Loader::layer(const std::string& prefix) {
  const Config& config = model_.config_;
  const Architecture& architecture = architecture_named(config.architecture);
  const std::int64_t q_size = config.num_heads * config.head_dim;
  const std::int64_t kv_size = config.num_kv_heads * config.head_dim;
  const std::vector<Named> qkv{{prefix + "attn_q", q_size}, {prefix + "attn_k", kv_size}, {prefix + "attn_v", kv_size}};
  const std::vector<Named> gate_up{{prefix + "ffn_gate", config.intermediate_size},
                                   {prefix + "ffn_up", config.intermediate_size}};
  Layer layer;
  layer.attn_norm = vector(prefix + "attn_norm.weight", config.hidden_size);
  layer.qkv = linear(qkv, config.hidden_size, true);
  if (architecture.qkv_bias) layer.qkv.bias = biases(qkv);
  if (architecture.qk_norm) {
    layer.q_norm = vector(prefix + "attn_q_norm.weight", config.head_dim);
    layer.k_norm = vector(prefix + "attn_k_norm.weight", config.head_dim);
  }
  layer.output = linear({{prefix + "attn_output", config.hidden_size}}, q_size, true);
  layer.ffn_norm = vector(prefix + "ffn_norm.weight", config.hidden_size);
  layer.fused_silu = model_.ops_->matmul_silu_mul != nullptr;
  layer.gate_up = linear(gate_up, config.hidden_size, !layer.fused_silu);
  layer.down = linear({{prefix + "ffn_down", config.hidden_size}}, config.intermediate_size, true);
  return layer;
}

void Loader::refuse_leftovers() const {
  if (tensors_.empty()) return;
  throw vt::Error("tensor '" + tensors_.begin()->first + "' is not part of the architecture '" +
                  model_.config_.architecture + "'");
}

void Loader::load() {
  const Config& config = model_.config_;
  if (has("blk.0.ffn_down.weight")) model_.matrix_dtype_ = tensors_["blk.0.ffn_down.weight"].dtype;
  const bool tied = !has("output.weight");
  model_.embedding_ = matrix("token_embd.weight", config.vocab_size, config.hidden_size,
                             tied ? vt::WeightUse::tied : vt::WeightUse::embedding);
  if (!tied) {
    model_.head_ = matrix("output.weight", config.vocab_size, config.hidden_size, vt::WeightUse::matmul);
  }
  model_.output_norm_ = vector("output_norm.weight", config.hidden_size);
  const float* factors = nullptr;
  if (has("rope_freqs.weight")) {
    const vt::Tensor tensor = take("rope_freqs.weight", {config.head_dim / 2});
    if (tensor.dtype != vt::DType::F32) throw vt::Error("'rope_freqs.weight' must be F32");
    factors = tensor.as<const float>();
  }
  model_.frequencies_ = inverse_frequencies(config, factors);
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    model_.layers_.push_back(layer("blk." + std::to_string(i) + "."));
  }
  refuse_leftovers();
}

}  // namespace model

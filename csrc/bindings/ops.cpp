// Single ops of a backend's table on NumPy arrays, for tests: `run_op(backend, name, **arguments)`.
//
// Arguments are named as in vt/ops.h; a weight is a Weight; a cache is two float32 arrays `keys` and `values` of shape
// (num_blocks, kv_heads, block_size, head_dim), stored as `kv_dtype`. Every op also takes `threads` (1), `precision`
// ("reference") and `activation_dtype` ("F32"); activations are float32 here and converted. Results are what the op
// writes, in the order of its args struct: one array or a tuple.
#include <map>

#include "bindings/op_call.h"

namespace bindings {
namespace {

using Runner = py::object (*)(OpCall&);

// Runs a table's entry with the GIL released; the caller reads the results after.
template <auto Member, typename Args>
void run(OpCall& call, const Args& args) {
  call.refuse_leftovers();
  const py::gil_scoped_release release;
  (call.ops().*Member)(call.queue(), args);
  call.device().platform().synchronise(call.queue());
}

std::vector<std::int64_t> shape_of(const vt::Tensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.rank};
}

std::int64_t length(OpCall& call, const char* name) {
  return py::len(call.value<py::object>(name));
}

py::object embedding(OpCall& call) {
  const std::int64_t tokens = length(call, "ids");
  const auto* ids = call.integers<std::int32_t>("ids");
  const vt::PreparedWeight weight = call.weight("weight", vt::WeightUse::embedding);
  const vt::Tensor out = call.output(vt::DType::F32, {tokens, weight.tensor.cols()});
  run<&vt::OpTable::embedding>(call, vt::EmbeddingArgs{.ids = ids, .weight = weight, .out = out});
  return call.read(out);
}

py::object matmul(OpCall& call) {
  const vt::Tensor x = call.activations("x");
  const vt::PreparedWeight weight = call.weight("weight", vt::WeightUse::matmul);
  const vt::Tensor bias = call.optional_floats("bias", vt::DType::F32);
  const vt::Tensor out = call.output(vt::DType::F32, {x.rows(), weight.tensor.rows()});
  run<&vt::OpTable::matmul>(call, vt::MatmulArgs{.x = x,
                                                 .weight = weight,
                                                 .bias = bias,
                                                 .out = out,
                                                 .batch_invariant = call.value<bool>("batch_invariant", false)});
  return call.read(out);
}

py::object matmul_silu_mul(OpCall& call) {
  const vt::Tensor x = call.activations("x");
  const vt::PreparedWeight gate = call.weight("gate", vt::WeightUse::matmul);
  const vt::PreparedWeight up = call.weight("up", vt::WeightUse::matmul);
  const vt::Tensor out = call.output(call.activation(), {x.rows(), gate.tensor.rows()});
  run<&vt::OpTable::matmul_silu_mul>(
      call,
      vt::MatmulSiluMulArgs{
          .x = x, .gate = gate, .up = up, .out = out, .batch_invariant = call.value<bool>("batch_invariant", false)});
  return call.read(out);
}

py::object rms_norm(OpCall& call) {
  const vt::Tensor x = call.has("x") ? call.activations("x") : vt::Tensor{};
  const vt::Tensor residual = call.optional_floats("residual", vt::DType::F32);
  const vt::Tensor weight = call.floats("weight", vt::DType::F32);
  const vt::Tensor out = call.output(call.activation(), shape_of(x.empty() ? residual : x));
  run<&vt::OpTable::rms_norm>(
      call,
      vt::RmsNormArgs{.x = x, .residual = residual, .weight = weight, .out = out, .eps = call.value<float>("eps")});
  if (residual.empty()) return call.read(out);
  return py::make_tuple(call.read(residual), call.read(out));
}

py::object rope(OpCall& call) {
  const vt::Tensor q = call.activations("q");
  const vt::Tensor k = call.activations("k");
  run<&vt::OpTable::rope>(call, vt::RopeArgs{.q = q,
                                             .k = k,
                                             .positions = call.integers<std::int32_t>("positions"),
                                             .cos_sin = call.floats("cos_sin", vt::DType::F32).as<const float>(),
                                             .interleaved = call.value<bool>("interleaved")});
  return py::make_tuple(call.read(q), call.read(k));
}

py::object silu_mul(OpCall& call) {
  const vt::Tensor gate_up = call.activations("gate_up");
  const vt::Tensor out = call.output(call.activation(), {gate_up.rows(), gate_up.cols() / 2});
  run<&vt::OpTable::silu_mul>(call, vt::SiluMulArgs{.gate_up = gate_up, .out = out});
  return call.read(out);
}

// Keys as Python sees them, (..., positions, head_dim), from or to a backend's transposed runs.
py::array_t<float> transposed(const Array<float>& keys, std::int64_t run, bool back) {
  if (run == 0) return keys;
  const std::vector<py::ssize_t> shape(keys.shape(), keys.shape() + keys.ndim());
  py::array_t<float> out(shape);
  const std::int64_t dim = shape.back();
  for (std::int64_t i = 0; i < keys.size(); ++i) {
    const std::int64_t row = i / dim;
    const std::int64_t moved = row / run * run * dim + i % dim * run + row % run;
    out.mutable_data()[back ? i : moved] = keys.data()[back ? moved : i];
  }
  return out;
}

vt::KvCache cache_of(OpCall& call, vt::DType dtype) {
  return {.keys = call.floats("keys", dtype), .values = call.floats("values", dtype)};
}

vt::DType kv_dtype(OpCall& call) {
  return vt::dtype_named(call.value<std::string>("kv_dtype", "F32"));
}

const vt::AttentionBackend& attention_backend(OpCall& call, const vt::KvCache& cache, std::int64_t heads,
                                              vt::AttentionShape& shape) {
  shape = {.heads = static_cast<std::int32_t>(heads),
           .kv_heads = static_cast<std::int32_t>(cache.keys.shape[1]),
           .head_dim = static_cast<std::int32_t>(cache.keys.shape[3]),
           .block_size = static_cast<std::int32_t>(cache.keys.shape[2]),
           .activation_dtype = call.activation(),
           .kv_dtype = cache.keys.dtype,
           .max_num_seqs = 256,
           .max_num_batched_tokens = 4096,
           .max_seq_len = static_cast<std::int32_t>(cache.keys.shape[0] * cache.keys.shape[2])};
  return vt::choose_attention(call.backend(), call.device().get(), call.precision(), shape,
                              call.value<std::string>("attention_backend", ""));
}

py::object read_cache(OpCall& call, const vt::KvCache& cache, std::int64_t key_run = 0) {
  return py::make_tuple(transposed(call.read(cache.keys), key_run, true), call.read(cache.values));
}

// The cache as the attention backend that is going to be chosen wants it.
struct ChosenCache {
  const vt::AttentionBackend* backend;
  vt::KvCache cache;
  vt::AttentionShape shape;
};

ChosenCache chosen_cache(OpCall& call, std::int64_t heads) {
  const vt::DType dtype = kv_dtype(call);
  ChosenCache chosen{.backend = nullptr, .cache = cache_of(call, dtype), .shape = {}};
  chosen.backend = &attention_backend(call, chosen.cache, heads, chosen.shape);
  if (chosen.backend->key_run > 0) {
    call.replace("keys", transposed(call.value<Array<float>>("keys"), chosen.backend->key_run, false));
    chosen.cache = cache_of(call, dtype);
  }
  return chosen;
}

py::object kv_write(OpCall& call) {
  const vt::Tensor k = call.activations("k");
  const ChosenCache chosen = chosen_cache(call, k.shape[1]);
  const vt::KvWriteArgs args{.k = k,
                             .v = call.activations("v"),
                             .slot_mapping = call.integers<std::int64_t>("slot_mapping"),
                             .cache = chosen.cache};
  call.refuse_leftovers();
  chosen.backend->kv_write(call.queue(), args);
  return read_cache(call, chosen.cache, chosen.backend->key_run);
}

py::object rope_kv_write(OpCall& call) {
  const vt::Tensor q = call.activations("q");
  const auto [backend, cache, shape] = chosen_cache(call, q.shape[1]);
  const vt::RopeKvWriteArgs args{.q = q,
                                 .k = call.activations("k"),
                                 .v = call.activations("v"),
                                 .q_norm = call.optional_floats("q_norm", vt::DType::F32),
                                 .k_norm = call.optional_floats("k_norm", vt::DType::F32),
                                 .eps = call.value<float>("eps", 1e-6f),
                                 .positions = call.integers<std::int32_t>("positions"),
                                 .cos_sin = call.floats("cos_sin", vt::DType::F32).as<const float>(),
                                 .interleaved = call.value<bool>("interleaved"),
                                 .slot_mapping = call.integers<std::int64_t>("slot_mapping"),
                                 .cache = cache};
  if (!backend->rope_kv_write) {
    throw vt::Error("attention backend '" + std::string(backend->name) + "' has no op 'rope_kv_write'");
  }
  call.refuse_leftovers();
  backend->rope_kv_write(call.queue(), args);
  return py::make_tuple(call.read(args.q), transposed(call.read(cache.keys), backend->key_run, true),
                        call.read(cache.values));
}

struct Longest {
  std::int32_t query = 0;
  std::int32_t sequence = 0;
};

Longest longest(OpCall& call) {
  const auto starts = call.value<std::vector<std::int32_t>>("query_start_loc");
  const auto lengths = call.value<std::vector<std::int32_t>>("seq_lens");
  Longest found;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    found.query = std::max(found.query, starts.at(i + 1) - starts.at(i));
    found.sequence = std::max(found.sequence, lengths[i]);
  }
  return found;
}

py::object attention(OpCall& call) {
  const vt::Tensor q = call.activations("q");
  const auto table = call.value<Array<std::int32_t>>("block_table");
  const Longest lengths = longest(call);
  const auto [backend, cache, shape] = chosen_cache(call, q.shape[1]);
  const vt::Tensor out = call.output(call.activation(), shape_of(q));
  const vt::AttentionArgs args{.q = q,
                               .cache = cache,
                               .block_table = call.integers<std::int32_t>("block_table"),
                               .query_start_loc = call.integers<std::int32_t>("query_start_loc"),
                               .seq_lens = call.integers<std::int32_t>("seq_lens"),
                               .block_table_stride = static_cast<std::int32_t>(table.shape(1)),
                               .num_reqs = static_cast<std::int32_t>(table.shape(0)),
                               .max_query_len = lengths.query,
                               .max_seq_len = lengths.sequence,
                               .scale = call.value<float>("scale"),
                               .out = out,
                               .workspace = call.scratch(backend->workspace_bytes(call.device().get(), shape)),
                               .batch_invariant = call.value<bool>("batch_invariant", false)};
  call.refuse_leftovers();
  backend->attention(call.queue(), args);
  return call.read(out);
}

py::object copy_blocks(OpCall& call) {
  const vt::KvCache cache = cache_of(call, kv_dtype(call));
  const auto count = static_cast<std::int32_t>(length(call, "source"));
  run<&vt::OpTable::copy_blocks>(call, vt::CopyBlocksArgs{.cache = cache,
                                                          .source = call.integers<std::int32_t>("source"),
                                                          .target = call.integers<std::int32_t>("target"),
                                                          .count = count});
  return read_cache(call, cache);
}

py::object gather_rows(OpCall& call) {
  const vt::Tensor x = call.activations("x");
  const vt::Tensor out = call.output(call.activation(), {length(call, "indices"), x.cols()});
  run<&vt::OpTable::gather_rows>(
      call, vt::GatherRowsArgs{.x = x, .indices = call.integers<std::int32_t>("indices"), .out = out});
  return call.read(out);
}

py::object logits_processors(OpCall& call) {
  const vt::Tensor logits = call.floats("logits", vt::DType::F32);
  const vt::Tensor out = call.output(vt::DType::F32, shape_of(logits));
  const auto numbers = [&](const char* name) { return call.optional_floats(name, vt::DType::F32).as<const float>(); };
  run<&vt::OpTable::logits_processors>(
      call, vt::LogitsProcessorsArgs{.logits = logits,
                                     .idx_mapping = call.integers<std::int32_t>("idx_mapping"),
                                     .bias_start = call.optional_integers<std::int32_t>("bias_start"),
                                     .bias_ids = call.optional_integers<std::int32_t>("bias_ids"),
                                     .bias_values = numbers("bias_values"),
                                     .allowed = call.optional_integers<std::uint32_t>("allowed"),
                                     .repetition = numbers("repetition"),
                                     .presence = numbers("presence"),
                                     .frequency = numbers("frequency"),
                                     .prompt_mask = call.optional_integers<std::uint32_t>("prompt_mask"),
                                     .output_counts = call.optional_integers<std::int32_t>("output_counts"),
                                     .out = out});
  return call.read(out);
}

py::object sample(OpCall& call) {
  const vt::Tensor logits = call.floats("logits", vt::DType::F32);
  const bool greedy = !call.has("temperature");
  auto* ids = call.output_numbers<std::int64_t>(logits.rows());
  vt::SampleArgs args{.logits = logits,
                      .temperature = nullptr,
                      .top_k = nullptr,
                      .top_p = nullptr,
                      .min_p = nullptr,
                      .seed = nullptr,
                      .index = nullptr,
                      .all_greedy = greedy,
                      .token_ids = ids};
  if (!greedy) {
    args.temperature = call.floats("temperature", vt::DType::F32).as<const float>();
    args.top_k = call.integers<std::int32_t>("top_k");
    args.top_p = call.floats("top_p", vt::DType::F32).as<const float>();
    args.min_p = call.floats("min_p", vt::DType::F32).as<const float>();
    args.seed = call.integers<std::uint64_t>("seed");
    args.index = call.integers<std::int64_t>("index");
  }
  run<&vt::OpTable::sample>(call, args);
  return call.read(ids, {logits.rows()});
}

py::object logprobs(OpCall& call) {
  const vt::Tensor logits = call.floats("logits", vt::DType::F32);
  const auto top = call.value<std::int32_t>("num_top");
  const std::int64_t rows = logits.rows();
  const vt::LogprobsArgs args{.logits = logits,
                              .token_ids = call.integers<std::int64_t>("token_ids"),
                              .num_top = top,
                              .logprobs = call.output_numbers<float>(rows),
                              .top_ids = call.output_numbers<std::int32_t>(rows * top),
                              .top_logprobs = call.output_numbers<float>(rows * top)};
  run<&vt::OpTable::logprobs>(call, args);
  return py::make_tuple(call.read(args.logprobs, {rows}), call.read(args.top_ids, {rows, top}),
                        call.read(args.top_logprobs, {rows, top}));
}

py::object count_tokens(OpCall& call) {
  const auto counts = call.value<Array<std::int32_t>>("output_counts");
  const auto count = static_cast<std::int32_t>(length(call, "token_ids"));
  auto* device_counts = call.integers<std::int32_t>("output_counts");
  run<&vt::OpTable::count_tokens>(call, vt::CountTokensArgs{.token_ids = call.integers<std::int64_t>("token_ids"),
                                                            .idx_mapping = call.integers<std::int32_t>("idx_mapping"),
                                                            .count = count,
                                                            .output_counts = device_counts,
                                                            .vocab_size = counts.shape(1)});
  return call.read(device_counts, {counts.shape(0), counts.shape(1)});
}

py::object combine(OpCall& call) {
  const std::int64_t tokens = length(call, "input_ids");
  const auto requests = static_cast<std::int32_t>(length(call, "seq_lens"));
  auto* input_ids = call.integers<std::int32_t>("input_ids");
  run<&vt::OpTable::combine>(
      call, vt::CombineArgs{.input_ids = input_ids,
                            .idx_mapping = call.integers<std::int32_t>("idx_mapping"),
                            .last_sampled_tokens = call.integers<std::int32_t>("last_sampled_tokens"),
                            .query_start_loc = call.integers<std::int32_t>("query_start_loc"),
                            .seq_lens = call.integers<std::int32_t>("seq_lens"),
                            .prefill_len = call.integers<std::int32_t>("prefill_len"),
                            .draft_tokens = call.optional_integers<std::int32_t>("draft_tokens"),
                            .draft_tokens_stride = call.value<std::int64_t>("draft_tokens_stride", 0),
                            .cu_num_logits = call.optional_integers<std::int32_t>("cu_num_logits"),
                            .num_reqs = requests,
                            .num_new_sampled_tokens = call.value<std::int32_t>("num_new_sampled_tokens", 1)});
  return call.read(input_ids, {tokens});
}

py::object scatter_last_sampled(OpCall& call) {
  const std::int64_t rows = length(call, "last_sampled_tokens");
  const auto count = static_cast<std::int32_t>(length(call, "token_ids"));
  auto* last = call.integers<std::int32_t>("last_sampled_tokens");
  run<&vt::OpTable::scatter_last_sampled>(
      call, vt::ScatterLastSampledArgs{.token_ids = call.integers<std::int64_t>("token_ids"),
                                       .idx_mapping = call.integers<std::int32_t>("idx_mapping"),
                                       .last_sampled_tokens = last,
                                       .count = count});
  return call.read(last, {rows});
}

// `ops` is an (n, 3) array of row, source, token.
py::object apply_last_sampled_ops(OpCall& call) {
  const std::int64_t rows = length(call, "last_sampled_tokens");
  const auto count = static_cast<std::int32_t>(length(call, "ops"));
  auto* last = call.integers<std::int32_t>("last_sampled_tokens");
  const auto* ops = reinterpret_cast<const vt::LastSampledOp*>(call.integers<std::int32_t>("ops"));
  run<&vt::OpTable::apply_last_sampled_ops>(
      call, vt::ApplyLastSampledOpsArgs{.last_sampled_tokens = last, .ops = ops, .count = count});
  return call.read(last, {rows});
}

py::object dequantize(OpCall& call) {
  const auto weight = call.value<Weight>("weight");
  const vt::Tensor host = weight.tensor();
  void* memory = call.scratch(weight.bytes());
  call.device().platform().copy(call.queue(), memory, host.data, weight.bytes());
  vt::Tensor in = host;
  in.data = memory;
  const vt::Tensor out = call.output(vt::DType::F32, {host.rows(), host.cols()});
  run<&vt::OpTable::dequantize>(call, vt::DequantizeArgs{.in = in, .out = out});
  return call.read(out);
}

const std::map<std::string, Runner>& table_ops() {
  static const std::map<std::string, Runner> all{
      {"embedding", embedding},
      {"matmul", matmul},
      {"matmul_silu_mul", matmul_silu_mul},
      {"rms_norm", rms_norm},
      {"rope", rope},
      {"silu_mul", silu_mul},
      {"copy_blocks", copy_blocks},
      {"gather_rows", gather_rows},
      {"logits_processors", logits_processors},
      {"sample", sample},
      {"logprobs", logprobs},
      {"count_tokens", count_tokens},
      {"combine", combine},
      {"scatter_last_sampled", scatter_last_sampled},
      {"apply_last_sampled_ops", apply_last_sampled_ops},
      {"dequantize", dequantize},
  };
  return all;
}

const std::map<std::string, Runner>& attention_ops() {
  static const std::map<std::string, Runner> all{
      {"kv_write", kv_write}, {"rope_kv_write", rope_kv_write}, {"attention", attention}};
  return all;
}

py::object run_op(const std::string& backend, const std::string& name, const py::kwargs& arguments) {
  OpCall call(backend, arguments);
  if (const auto found = attention_ops().find(name); found != attention_ops().end()) return found->second(call);
  if (!vt::has_op(call.ops(), name)) {
    throw vt::Error("backend '" + std::string(call.backend().name) + "' has no op '" + name + "'");
  }
  return table_ops().at(name)(call);
}

}  // namespace

void bind_ops(py::module_& module) {
  module.def("run_op", run_op, py::arg("backend"), py::arg("name"));
}

}  // namespace bindings

// Sampling, the runner and what its steps return.
#include "runner/runner.h"

#include "bindings/bindings.h"

namespace bindings {
namespace {

using runner::Runner;
using runner::Sampling;

// A step with the runner that it belongs to.
struct PendingStep {
  std::shared_ptr<Runner> runner;
  std::shared_ptr<runner::Step> step;
};

// Every `step`-th value from `first` on: columns of a table.
template <typename T>
py::array_t<T> column(const std::vector<T>& values, std::size_t first, std::size_t step) {
  py::array_t<T> out(static_cast<py::ssize_t>(values.size() / step));
  for (std::size_t i = 0; i < values.size() / step; ++i)
    out.mutable_at(static_cast<py::ssize_t>(i)) = values[i * step + first];
  return out;
}

template <typename T, typename Line>
py::array_t<T> field(const std::vector<Line>& lines, T Line::* member) {
  py::array_t<T> out(static_cast<py::ssize_t>(lines.size()));
  for (std::size_t i = 0; i < lines.size(); ++i) out.mutable_at(static_cast<py::ssize_t>(i)) = lines[i].*member;
  return out;
}

template <typename T, typename Line>
py::list lists(const std::vector<Line>& lines, std::vector<T> Line::* member) {
  py::list out;
  for (const Line& line : lines) out.append(to_array(line.*member));
  return out;
}

std::shared_ptr<Sampling> make_sampling(float temperature, std::int32_t top_k, float top_p, float min_p,
                                        float repetition_penalty, float presence_penalty, float frequency_penalty,
                                        std::uint64_t seed,
                                        const std::optional<std::map<std::int32_t, float>>& logit_bias,
                                        std::int32_t top_logprobs, bool prompt_logprobs) {
  auto sampling = std::make_shared<Sampling>(Sampling{.temperature = temperature,
                                                      .top_k = top_k,
                                                      .top_p = top_p,
                                                      .min_p = min_p,
                                                      .repetition_penalty = repetition_penalty,
                                                      .presence_penalty = presence_penalty,
                                                      .frequency_penalty = frequency_penalty,
                                                      .seed = seed,
                                                      .logit_bias = {},
                                                      .top_logprobs = top_logprobs,
                                                      .prompt_logprobs = prompt_logprobs});
  if (logit_bias) sampling->logit_bias.assign(logit_bias->begin(), logit_bias->end());
  runner::validate(*sampling);
  return sampling;
}

std::shared_ptr<Runner> make_runner(std::shared_ptr<model::Model> model, std::int64_t num_blocks,
                                    std::int64_t block_size, std::int64_t max_num_seqs,
                                    std::int64_t max_num_batched_tokens, const std::string& kv_dtype,
                                    const std::optional<std::string>& attention_backend, bool batch_invariant,
                                    const std::string& async_device_mirror) {
  const py::gil_scoped_release release;
  return std::make_shared<Runner>(std::move(model), runner::Options{.num_blocks = num_blocks,
                                                                    .block_size = block_size,
                                                                    .max_num_seqs = max_num_seqs,
                                                                    .max_num_batched_tokens = max_num_batched_tokens,
                                                                    .kv_dtype = kv_dtype,
                                                                    .attention_backend = attention_backend.value_or(""),
                                                                    .batch_invariant = batch_invariant,
                                                                    .async_device_mirror = async_device_mirror});
}

PendingStep launch(const std::shared_ptr<Runner>& self, const Array<std::int32_t>& rows,
                   const Array<std::int32_t>& num_computed, const Array<std::int32_t>& num_tokens,
                   const std::optional<std::map<std::int32_t, Array<std::uint32_t>>>& allowed) {
  runner::Scheduled scheduled{.rows = as_span(rows, "rows"),
                              .num_computed = as_span(num_computed, "num_computed"),
                              .num_tokens = as_span(num_tokens, "num_tokens"),
                              .allowed = {}};
  if (allowed) {
    for (const auto& [row, mask] : *allowed) {
      const auto words = as_span(mask, "allowed");
      scheduled.allowed[row].assign(words.begin(), words.end());
    }
  }
  const py::gil_scoped_release release;
  return {self, self->launch(scheduled)};
}

py::tuple read_kv(Runner& self, std::int64_t layer, std::int32_t block) {
  std::vector<float> values;
  {
    const py::gil_scoped_release release;
    values = self.read_kv(layer, block);
  }
  const model::Config& config = self.model().config();
  const std::vector<py::ssize_t> shape{self.block_size(), config.num_kv_heads, config.head_dim};
  return py::make_tuple(py::array_t<float>(shape, values.data()),
                        py::array_t<float>(shape, values.data() + values.size() / 2));
}

void bind_sampling(py::module_& module) {
  py::class_<Sampling, std::shared_ptr<Sampling>>(module, "Sampling")
      .def(py::init(&make_sampling), py::kw_only(), py::arg("temperature") = 0.0f, py::arg("top_k") = 0,
           py::arg("top_p") = 1.0f, py::arg("min_p") = 0.0f, py::arg("repetition_penalty") = 1.0f,
           py::arg("presence_penalty") = 0.0f, py::arg("frequency_penalty") = 0.0f, py::arg("seed") = 0,
           py::arg("logit_bias") = py::none(), py::arg("top_logprobs") = 0, py::arg("prompt_logprobs") = false);
}

void bind_outputs(py::module_& module) {
  using runner::PromptScores;
  using runner::Result;
  py::class_<PromptScores>(module, "PromptLogprobs")
      .def_readonly("row", &PromptScores::row)
      .def_readonly("start", &PromptScores::start)
      .def_property_readonly("logprobs", [](const PromptScores& s) { return to_array(s.logprobs); })
      .def_property_readonly("best_ids", [](const PromptScores& s) { return column(s.best_ids, 0, 2); })
      .def_property_readonly("best_logprobs", [](const PromptScores& s) { return column(s.best_logprobs, 0, 2); })
      .def_property_readonly("runner_up_ids", [](const PromptScores& s) { return column(s.best_ids, 1, 2); })
      .def_property_readonly("runner_up_logprobs", [](const PromptScores& s) { return column(s.best_logprobs, 1, 2); });
  using Line = Result::Line;
  py::class_<Result>(module, "StepOutput")
      .def_property_readonly("rows", [](const Result& r) { return field(r.lines, &Line::row); })
      .def_property_readonly("token_ids", [](const Result& r) { return field(r.lines, &Line::token_id); })
      .def_property_readonly("logprobs", [](const Result& r) { return field(r.lines, &Line::logprob); })
      .def_property_readonly("runner_up_ids", [](const Result& r) { return field(r.lines, &Line::runner_up_id); })
      .def_property_readonly("runner_up_logprobs",
                             [](const Result& r) { return field(r.lines, &Line::runner_up_logprob); })
      .def_property_readonly("top_ids", [](const Result& r) { return lists(r.lines, &Line::top_ids); })
      .def_property_readonly("top_logprobs", [](const Result& r) { return lists(r.lines, &Line::top_logprobs); })
      .def_readonly("prompt_logprobs", &Result::prompts);
  py::class_<PendingStep>(module, "PendingStep")
      .def(
          "done", [](const PendingStep& self) { return self.runner->done(*self.step); },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "wait", [](const PendingStep& self) { return self.runner->wait(*self.step); },
          py::call_guard<py::gil_scoped_release>());
}

}  // namespace

void bind_runner(py::module_& module) {
  bind_sampling(module);
  bind_outputs(module);
  py::class_<Runner, std::shared_ptr<Runner>>(module, "Runner")
      .def(py::init(&make_runner), py::arg("model"), py::kw_only(), py::arg("num_blocks"), py::arg("block_size") = 16,
           py::arg("max_num_seqs") = 64, py::arg("max_num_batched_tokens") = 512, py::arg("kv_dtype") = "auto",
           py::arg("attention_backend") = py::none(), py::arg("batch_invariant") = false,
           py::arg("async_device_mirror") = "auto")
      .def_property_readonly("kv_bytes_per_token", &Runner::kv_bytes_per_token)
      .def_property_readonly("kv_bytes", &Runner::kv_bytes)
      .def_property_readonly("mirror", &Runner::mirror)
      .def_property_readonly("attention_backend", &Runner::attention_backend)
      .def(
          "add",
          [](Runner& self, std::int32_t row, const Array<std::int32_t>& token_ids, const Sampling& sampling,
             std::int64_t num_prompt_tokens) {
            const auto tokens = as_span(token_ids, "token_ids");
            const py::gil_scoped_release release;
            self.add(row, tokens, sampling, num_prompt_tokens);
          },
          py::arg("row"), py::arg("token_ids"), py::arg("sampling"), py::arg("num_prompt_tokens"))
      .def("remove", &Runner::remove, py::arg("row"), py::call_guard<py::gil_scoped_release>())
      .def(
          "set_blocks",
          [](Runner& self, std::int32_t row, std::int64_t first, const Array<std::int32_t>& block_ids) {
            const auto blocks = as_span(block_ids, "block_ids");
            const py::gil_scoped_release release;
            self.set_blocks(row, first, blocks);
          },
          py::arg("row"), py::arg("first"), py::arg("block_ids"))
      .def(
          "copy_blocks",
          [](Runner& self, const Array<std::int32_t>& source, const Array<std::int32_t>& target) {
            const auto from = as_span(source, "source");
            const auto to = as_span(target, "target");
            const py::gil_scoped_release release;
            self.copy_blocks(from, to);
          },
          py::arg("source"), py::arg("target"))
      .def("launch", &launch, py::arg("rows"), py::arg("num_computed"), py::arg("num_tokens"),
           py::arg("allowed") = py::none())
      .def("read_kv", &read_kv, py::arg("layer"), py::arg("block"));
}

}  // namespace bindings

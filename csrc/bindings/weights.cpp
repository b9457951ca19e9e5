// Tensors of the model file, the model's configuration, and the model on a device.
#include <limits>
#include <map>

#include "bindings/bindings.h"

namespace bindings {
namespace {

constexpr std::size_t kMaxTensorRank = vt::kMaxRank;

std::int64_t extent(const py::handle& value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (PyErr_Occurred()) throw py::error_already_set();
  if (overflow != 0 || number < 1) {
    throw vt::BadArgument("a weight's dimensions must be positive, not " + py::str(value).cast<std::string>());
  }
  return number;
}

vt::DType weight_dtype(const std::string& name) {
  const vt::DType dtype = vt::dtype_named(name);
  switch (dtype) {
    case vt::DType::I32:
    case vt::DType::I64:
    case vt::DType::U32:
      throw vt::Error("a weight cannot be of type " + name);
    default:
      return dtype;
  }
}

// Bytes of the tensor; throws where they don't fit into 63 bits.
std::int64_t checked_bytes(vt::DType dtype, const std::vector<std::int64_t>& shape) {
  const vt::BlockShape block = vt::block_shape(dtype);
  if (shape.back() % block.elements != 0) {
    throw vt::BadArgument("rows of " + std::string(vt::name(dtype)) + " hold a multiple of " +
                          std::to_string(block.elements) + " elements, not " + std::to_string(shape.back()));
  }
  std::int64_t bytes = block.bytes;
  const auto multiply = [&](std::int64_t factor) {
    if (factor > std::numeric_limits<std::int64_t>::max() / bytes) {
      throw vt::BadArgument("a weight of this shape is larger than any memory");
    }
    bytes *= factor;
  };
  multiply(shape.back() / block.elements);
  for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) multiply(shape[axis]);
  return bytes;
}

vt::Tensor dense(void* data, vt::DType dtype, const std::vector<std::int64_t>& shape) {
  vt::Tensor tensor{
      .data = data, .dtype = dtype, .rank = static_cast<std::int32_t>(shape.size()), .shape = {}, .stride = {}};
  std::int64_t step = vt::bytes_for(dtype, shape.back());
  for (int axis = tensor.rank - 1; axis >= 0; --axis) {
    const auto extent = shape[static_cast<std::size_t>(axis)];
    tensor.shape[axis] = extent;
    tensor.stride[axis] = axis == tensor.rank - 1 ? vt::block_shape(dtype).bytes : step;
    if (axis < tensor.rank - 1) step *= extent;
  }
  return tensor;
}

py::tuple shape_of(const Weight& weight) {
  py::tuple shape(weight.tensor().rank);
  for (int axis = 0; axis < weight.tensor().rank; ++axis)
    shape[static_cast<std::size_t>(axis)] = weight.tensor().shape[axis];
  return shape;
}

std::shared_ptr<model::Config> make_config(const std::string& architecture, std::int64_t num_layers,
                                           std::int64_t hidden_size, std::int64_t intermediate_size,
                                           std::int64_t num_heads, std::int64_t num_kv_heads, std::int64_t head_dim,
                                           std::int64_t vocab_size, std::int64_t context_length, float rms_norm_eps,
                                           float rope_theta, bool rope_interleaved,
                                           const std::optional<std::map<std::string, float>>& rope_scaling) {
  auto config = std::make_shared<model::Config>(model::Config{.architecture = architecture,
                                                              .num_layers = num_layers,
                                                              .hidden_size = hidden_size,
                                                              .intermediate_size = intermediate_size,
                                                              .num_heads = num_heads,
                                                              .num_kv_heads = num_kv_heads,
                                                              .head_dim = head_dim,
                                                              .vocab_size = vocab_size,
                                                              .context_length = context_length,
                                                              .rms_norm_eps = rms_norm_eps,
                                                              .rope_theta = rope_theta,
                                                              .rope_interleaved = rope_interleaved});
  for (const auto& [key, value] : rope_scaling.value_or(std::map<std::string, float>{})) {
    if (key == "type") {
      if (value != 0.0f && value != 1.0f && value != 2.0f) {
        throw vt::BadArgument("rope_scaling type must be 0 (none), 1 (linear) or 2 (llama3)");
      }
      config->rope_scaling = static_cast<model::RopeScaling>(static_cast<int>(value));
    } else if (key == "factor") {
      config->rope_factor = value;
    } else if (key == "low_freq_factor") {
      config->rope_low_freq_factor = value;
    } else if (key == "high_freq_factor") {
      config->rope_high_freq_factor = value;
    } else if (key == "original_context_length") {
      config->rope_original_context = value;
    } else {
      throw vt::BadArgument("unknown key in rope_scaling: '" + key +
                            "'; there are type, factor, low_freq_factor, high_freq_factor, original_context_length");
    }
  }
  model::validate(*config);
  return config;
}

void bind_config(py::module_& module) {
  using model::Config;
  py::class_<Config, std::shared_ptr<Config>>(module, "ModelConfig")
      .def(py::init(&make_config), py::kw_only(), py::arg("architecture"), py::arg("num_layers"),
           py::arg("hidden_size"), py::arg("intermediate_size"), py::arg("num_heads"), py::arg("num_kv_heads"),
           py::arg("head_dim"), py::arg("vocab_size"), py::arg("context_length"), py::arg("rms_norm_eps"),
           py::arg("rope_theta"), py::arg("rope_interleaved"), py::arg("rope_scaling") = py::none())
      .def_readonly("architecture", &Config::architecture)
      .def_readonly("num_layers", &Config::num_layers)
      .def_readonly("hidden_size", &Config::hidden_size)
      .def_readonly("intermediate_size", &Config::intermediate_size)
      .def_readonly("num_heads", &Config::num_heads)
      .def_readonly("num_kv_heads", &Config::num_kv_heads)
      .def_readonly("head_dim", &Config::head_dim)
      .def_readonly("vocab_size", &Config::vocab_size)
      .def_readonly("context_length", &Config::context_length)
      .def_readonly("rms_norm_eps", &Config::rms_norm_eps)
      .def_readonly("rope_theta", &Config::rope_theta)
      .def_readonly("rope_interleaved", &Config::rope_interleaved);
}

std::shared_ptr<model::Model> make_model(const std::string& device, const model::Config& config,
                                         const std::map<std::string, Weight>& weights, const std::string& precision,
                                         int threads) {
  const auto [backend, index] = device_named(device);
  const vt::Precision wanted = precision_named(precision);
  model::HostTensors tensors;
  for (const auto& [name, weight] : weights) tensors[name] = weight.tensor();
  const py::gil_scoped_release release;
  return std::make_shared<model::Model>(*backend, index, vt::DeviceOptions{.threads = threads}, config,
                                        std::move(tensors), wanted);
}

void bind_model(py::module_& module) {
  using model::Model;
  py::class_<Model, std::shared_ptr<Model>>(module, "Model")
      .def(py::init(&make_model), py::kw_only(), py::arg("device"), py::arg("config"), py::arg("weights"),
           py::arg("precision") = "fast", py::arg("threads") = 0)
      .def_property_readonly("device",
                             [](const Model& model) -> py::object {
                               const vt::OpenDevice& device = model.device();
                               const py::object devices = py::module_::import("engine._core").attr("devices");
                               const py::list found = devices(std::string(device.backend().name));
                               return found[static_cast<std::size_t>(device.index())];
                             })
      .def_property_readonly("config",
                             [](const Model& model) { return std::make_shared<model::Config>(model.config()); })
      .def_property_readonly(
          "precision",
          [](const Model& model) { return model.precision() == vt::Precision::reference ? "reference" : "fast"; })
      .def_property_readonly("threads",
                             [](const Model& model) { return model.device().platform().threads(model.device().get()); })
      .def_property_readonly("weight_bytes", &Model::weight_bytes)
      .def_property_readonly("huge_pages", &Model::huge_pages);
}

py::array_t<float> dequantize(const Weight& weight) {
  std::vector<py::ssize_t> shape;
  for (int axis = 0; axis < weight.tensor().rank; ++axis) shape.push_back(weight.tensor().shape[axis]);
  py::array_t<float> out(shape);
  const std::int64_t cols = weight.tensor().cols();
  const std::int64_t rows = weight.tensor().size() / cols;
  vt::Tensor in = vt::make_tensor(weight.tensor().data, weight.tensor().dtype, {rows, cols});
  const vt::Tensor target = vt::make_tensor(out.mutable_data(), vt::DType::F32, {rows, cols});
  const py::gil_scoped_release release;
  const vt::OpenDevice device(vt::backend_named("cpu"), 0, {.threads = 1});
  const vt::QueueHandle queue = vt::make_queue(device);
  device.backend().ops(device.get(), vt::Precision::reference).dequantize(queue.get(), {.in = in, .out = target});
  return out;
}

}  // namespace

BufferView::BufferView(const py::object& source) {
  if (PyObject_GetBuffer(source.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
}

BufferView::~BufferView() {
  const py::gil_scoped_acquire acquire;
  PyBuffer_Release(&view_);
}

Weight::Weight(const std::string& dtype, const py::sequence& shape, const py::object& data) {
  const vt::DType type = weight_dtype(dtype);
  if (shape.size() < 1 || shape.size() > kMaxTensorRank) {
    throw vt::BadArgument("a weight has 1 to 4 dimensions, not " + std::to_string(shape.size()));
  }
  std::vector<std::int64_t> extents;
  for (const py::handle value : shape) extents.push_back(extent(value));
  const std::int64_t bytes = checked_bytes(type, extents);
  buffer_ = std::make_shared<BufferView>(data);
  if (bytes != static_cast<std::int64_t>(buffer_->bytes())) {
    throw vt::BadArgument("a weight of type " + dtype + " and this shape takes " + std::to_string(bytes) +
                          " bytes, not " + std::to_string(buffer_->bytes()));
  }
  tensor_ = dense(buffer_->data(), type, extents);
}

void bind_weights(py::module_& module) {
  py::class_<Weight>(module, "Weight")
      .def(py::init<const std::string&, const py::sequence&, const py::object&>(), py::kw_only(), py::arg("dtype"),
           py::arg("shape"), py::arg("data"))
      .def_property_readonly("dtype", [](const Weight& weight) { return std::string(vt::name(weight.tensor().dtype)); })
      .def_property_readonly("shape", shape_of)
      .def_property_readonly("nbytes", &Weight::bytes);
  module.def("dequantize", dequantize, py::arg("weight"));
  bind_config(module);
  bind_model(module);
}

}  // namespace bindings

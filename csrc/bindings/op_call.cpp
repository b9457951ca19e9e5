// See op_call.h.
#include "bindings/op_call.h"

#include <map>

#include "vt/half.h"

namespace bindings {
namespace {

constexpr std::size_t kAlignment = 64;

// Opening a device is slow where it is a GPU, so each stays open until the process ends.
const vt::OpenDevice& opened(const std::string& name, int threads) {
  static auto* devices = new std::map<std::pair<std::string, int>, std::unique_ptr<vt::OpenDevice>>;
  std::unique_ptr<vt::OpenDevice>& entry = (*devices)[{name, threads}];
  if (!entry) {
    const auto [backend, index] = device_named(name);
    entry = std::make_unique<vt::OpenDevice>(*backend, index, vt::DeviceOptions{.threads = threads});
  }
  return *entry;
}

std::vector<char> converted(const float* values, std::int64_t count, vt::DType dtype) {
  std::vector<char> bytes(static_cast<std::size_t>(vt::bytes_for(dtype, count)));
  auto* halves = reinterpret_cast<std::uint16_t*>(bytes.data());
  for (std::int64_t i = 0; i < count; ++i) {
    halves[i] = dtype == vt::DType::F16 ? vt::float_to_f16(values[i]) : vt::float_to_bf16(values[i]);
  }
  return bytes;
}

vt::Tensor shaped(void* data, vt::DType dtype, const std::vector<std::int64_t>& shape) {
  if (shape.empty() || shape.size() > vt::kMaxRank) throw vt::BadArgument("arrays have 1 to 4 dimensions");
  vt::Tensor tensor{
      .data = data, .dtype = dtype, .rank = static_cast<std::int32_t>(shape.size()), .shape = {}, .stride = {}};
  std::int64_t step = vt::block_shape(dtype).bytes;
  for (int axis = tensor.rank - 1; axis >= 0; --axis) {
    tensor.shape[axis] = shape[static_cast<std::size_t>(axis)];
    tensor.stride[axis] = step;
    step *= tensor.shape[axis];
  }
  return tensor;
}

std::vector<std::int64_t> shape_of(const py::array& array) {
  return {array.shape(), array.shape() + array.ndim()};
}

}  // namespace

OpCall::OpCall(const std::string& backend, py::kwargs arguments) : device_(nullptr), arguments_(std::move(arguments)) {
  const int threads = value<int>("threads", 1);
  precision_ = precision_named(value<std::string>("precision", "reference"));
  device_ = &opened(backend, threads);
  activation_ = vt::dtype_named(value<std::string>("activation_dtype", "F32"));
  ops_ = &device_->backend().ops(device_->get(), precision_);
  queue_ = vt::make_queue(*device_);
}

OpCall::~OpCall() {
  for (const vt::PreparedWeight& weight : weights_) device_->platform().free_weight(device_->get(), weight);
}

bool OpCall::has(const char* name) const {
  return arguments_.contains(name) && !arguments_[name].is_none();
}

py::object OpCall::take(const char* name) {
  if (!arguments_.contains(name)) throw vt::BadArgument("run_op: argument '" + std::string(name) + "' is missing");
  taken_.insert(name);
  return arguments_[name];
}

void OpCall::refuse_leftovers() const {
  for (const auto& [name, value] : arguments_) {
    if (!taken_.contains(name.cast<std::string>()) && !value.is_none()) {
      throw vt::BadArgument("run_op: unknown argument '" + name.cast<std::string>() + "'");
    }
  }
}

void* OpCall::scratch(std::size_t bytes) {
  return buffers_.emplace_back(*device_, bytes).data();
}

// Copies the memory that the array spans as it is, at the same distance from an aligned address.
vt::Tensor OpCall::upload(const py::array_t<float>& array) {
  vt::Tensor tensor = shaped(nullptr, vt::DType::F32, shape_of(array));
  std::size_t span = sizeof(float);
  for (int axis = 0; axis < tensor.rank; ++axis) {
    tensor.stride[axis] = array.strides(axis);
    if (array.size() > 0) span += static_cast<std::size_t>((tensor.shape[axis] - 1) * array.strides(axis));
  }
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(array.data()) % kAlignment;
  char* memory = static_cast<char*>(scratch(span + offset)) + offset;
  if (array.size() > 0) device_->platform().copy(queue(), memory, array.data(), span);
  tensor.data = memory;
  return tensor;
}

vt::Tensor OpCall::floats(const char* name, vt::DType dtype) {
  const auto array = take(name).cast<py::array_t<float>>();
  bool simple = array.ndim() >= 1;
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) simple &= array.strides(axis) >= 0;
  simple = simple && array.strides(array.ndim() - 1) == sizeof(float);
  vt::Tensor tensor;
  if (dtype == vt::DType::F32 && simple) {
    tensor = upload(array);
  } else {
    const auto dense = array.cast<Array<float>>();
    tensor = shaped(nullptr, dtype, shape_of(dense));
    const auto bytes = static_cast<std::size_t>(vt::bytes_for(dtype, dense.size()));
    tensor.data = scratch(bytes);
    std::vector<char> halves;
    const void* from = dense.data();
    if (dtype != vt::DType::F32) {
      halves = converted(dense.data(), dense.size(), dtype);
      from = halves.data();
    }
    if (bytes > 0) device_->platform().copy(queue(), tensor.data, from, bytes);
  }
  device_->platform().synchronise(queue());
  return tensor;
}

vt::PreparedWeight OpCall::weight(const char* name, vt::WeightUse use) {
  const auto weight = take(name).cast<Weight>();
  const vt::Tensor part = weight.tensor();
  if (part.rank != 2) throw vt::BadArgument("run_op: '" + std::string(name) + "' must have two dimensions");
  weights_.push_back(device_->platform().prepare_weight(device_->get(), {&part, 1}, use, precision_));
  return weights_.back();
}

vt::Tensor OpCall::output(vt::DType dtype, const std::vector<std::int64_t>& shape) {
  vt::Tensor tensor = shaped(nullptr, dtype, shape);
  const auto bytes = static_cast<std::size_t>(vt::bytes_for(dtype, tensor.size()));
  tensor.data = scratch(bytes);
  if (bytes > 0) device_->platform().zero(queue(), tensor.data, bytes);
  return tensor;
}

py::array_t<float> OpCall::read(const vt::Tensor& tensor) {
  const std::vector<py::ssize_t> shape(tensor.shape, tensor.shape + tensor.rank);
  py::array_t<float> out(shape);
  const std::int64_t cols = tensor.cols();
  const std::int64_t rows = cols ? tensor.size() / cols : 0;
  const std::int64_t inner = tensor.rank == 3 ? tensor.shape[1] : 1;
  std::vector<char> line(static_cast<std::size_t>(vt::bytes_for(tensor.dtype, cols)));
  for (std::int64_t row = 0; row < rows; ++row) {
    // Rank 4 is always dense here.
    const char* from = tensor.rank == 4   ? tensor.as<const char>() + row * tensor.stride[2]
                       : tensor.rank == 3 ? tensor.row<const char>(row / inner, row % inner)
                       : tensor.rank == 2 ? tensor.row<const char>(row)
                                          : tensor.as<const char>();
    device_->platform().copy(queue(), line.data(), from, line.size());
    device_->platform().synchronise(queue());
    for (std::int64_t i = 0; i < cols; ++i) {
      out.mutable_data()[row * cols + i] = vt::load_as_float(tensor.dtype, line.data(), i);
    }
  }
  return out;
}

}  // namespace bindings

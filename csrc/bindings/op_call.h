// One call of `run_op`: moves NumPy arrays to the device and back, and gives Python its errors.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "vt/handles.h"

namespace bindings {

class OpCall {
 public:
  OpCall(const std::string& backend, py::kwargs arguments);
  ~OpCall();

  const vt::OpenDevice& device() const { return *device_; }
  const vt::Backend& backend() const { return device_->backend(); }
  const vt::OpTable& ops() const { return *ops_; }
  vt::Queue* queue() const { return queue_.get(); }
  vt::Precision precision() const { return precision_; }
  vt::DType activation() const { return activation_; }

  bool has(const char* name) const;
  template <typename T>
  T value(const char* name) {
    return take(name).cast<T>();
  }
  template <typename T>
  T value(const char* name, T otherwise) {
    return has(name) ? value<T>(name) : otherwise;
  }

  // A float32 array as `dtype`. Strides and the misalignment of the data survive where the type is F32.
  vt::Tensor floats(const char* name, vt::DType dtype);
  vt::Tensor activations(const char* name) { return floats(name, activation_); }
  vt::Tensor optional_floats(const char* name, vt::DType dtype) {
    return has(name) ? floats(name, dtype) : vt::Tensor{};
  }
  template <typename T>
  T* integers(const char* name);
  template <typename T>
  T* optional_integers(const char* name) {
    return has(name) ? integers<T>(name) : nullptr;
  }
  vt::PreparedWeight weight(const char* name, vt::WeightUse use);

  vt::Tensor output(vt::DType dtype, const std::vector<std::int64_t>& shape);
  template <typename T>
  T* output_numbers(std::int64_t count);
  void* scratch(std::size_t bytes);

  // Back on the host as float32, dense.
  py::array_t<float> read(const vt::Tensor& tensor);
  template <typename T>
  py::array_t<T> read(const T* numbers, const std::vector<py::ssize_t>& shape);

  void replace(const char* name, const py::object& value) { arguments_[name] = value; }

  // Throws if an argument was given that nobody asked for.
  void refuse_leftovers() const;

 private:
  py::object take(const char* name);
  vt::Tensor upload(const py::array_t<float>& array);

  const vt::OpenDevice* device_;
  py::kwargs arguments_;
  std::set<std::string> taken_;
  vt::Precision precision_;
  vt::DType activation_;
  const vt::OpTable* ops_;
  vt::QueueHandle queue_;
  std::deque<vt::Buffer> buffers_;
  std::vector<vt::PreparedWeight> weights_;
};

template <typename T>
T* OpCall::integers(const char* name) {
  const auto array = take(name).cast<Array<T>>();
  const std::size_t bytes = static_cast<std::size_t>(array.size()) * sizeof(T);
  void* memory = scratch(bytes);
  if (bytes > 0) device_->platform().copy(queue(), memory, array.data(), bytes);
  device_->platform().synchronise(queue());
  return static_cast<T*>(memory);
}

template <typename T>
T* OpCall::output_numbers(std::int64_t count) {
  return static_cast<T*>(scratch(static_cast<std::size_t>(count) * sizeof(T)));
}

template <typename T>
py::array_t<T> OpCall::read(const T* numbers, const std::vector<py::ssize_t>& shape) {
  py::array_t<T> out(shape);
  device_->platform().copy(queue(), out.mutable_data(), numbers, static_cast<std::size_t>(out.nbytes()));
  device_->platform().synchronise(queue());
  return out;
}

}  // namespace bindings

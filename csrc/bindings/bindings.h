// What the parts of the module share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"
#include "vt/backend.h"

namespace bindings {

namespace py = pybind11;

// A view of any Python object with a contiguous buffer, kept alive with it.
class BufferView {
 public:
  explicit BufferView(const py::object& source);
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView();

  void* data() const { return view_.buf; }
  std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_;
};

// A tensor of the model file.
class Weight {
 public:
  Weight(const std::string& dtype, const py::sequence& shape, const py::object& data);

  const vt::Tensor& tensor() const { return tensor_; }
  std::size_t bytes() const { return buffer_->bytes(); }

 private:
  std::shared_ptr<BufferView> buffer_;
  vt::Tensor tensor_;
};

vt::Precision precision_named(const std::string& name);

// "cpu", "cuda", "cuda:1"
std::pair<const vt::Backend*, int> device_named(const std::string& name);

template <typename T>
py::array_t<T> to_array(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

// A one-dimensional array as a span; the array must outlive it.
template <typename T>
std::span<const T> as_span(const Array<T>& array, const char* name) {
  if (array.ndim() != 1) throw vt::BadArgument(std::string(name) + " must have one dimension");
  return {array.data(), static_cast<std::size_t>(array.size())};
}

void bind_devices(py::module_& module);
void bind_weights(py::module_& module);
void bind_runner(py::module_& module);
void bind_ops(py::module_& module);

}  // namespace bindings

// Backends, devices and what they can do.
#include <charconv>

#include "bindings/bindings.h"

namespace bindings {
namespace {

// A device's description with where it was found.
struct Found {
  std::string backend;
  int index;
  vt::DeviceInfo info;
};

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const vt::Backend* backend : vt::backends()) names.emplace_back(backend->name);
  return names;
}

std::vector<Found> devices(const std::string& name) {
  const vt::Backend& backend = vt::backend_named(name);
  std::vector<Found> found;
  for (int index = 0; index < backend.platform.device_count(); ++index) {
    found.push_back({name, index, backend.platform.device_info(index)});
  }
  return found;
}

std::vector<std::string> attention_backends(const std::string& name) {
  std::vector<std::string> names;
  for (const vt::AttentionBackend& one : vt::backend_named(name).attention) names.emplace_back(one.name);
  return names;
}

}  // namespace

vt::Precision precision_named(const std::string& name) {
  if (name == "reference") return vt::Precision::reference;
  if (name == "fast") return vt::Precision::fast;
  throw vt::BadArgument("precision must be reference or fast, not '" + name + "'");
}

std::pair<const vt::Backend*, int> device_named(const std::string& name) {
  const std::size_t colon = name.find(':');
  const vt::Backend& backend = vt::backend_named(name.substr(0, colon));
  int index = 0;
  if (colon != std::string::npos) {
    const char* begin = name.data() + colon + 1;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(begin, end, index);
    if (error != std::errc{} || rest != end || index < 0) {
      throw vt::BadArgument("device must be a backend or backend:index, not '" + name + "'");
    }
  }
  const int count = backend.platform.device_count();
  if (index >= count) {
    throw vt::Error("no device '" + std::string(backend.name) + ":" + std::to_string(index) + "': backend '" +
                    std::string(backend.name) + "' finds " + std::to_string(count));
  }
  return {&backend, index};
}

void bind_devices(py::module_& module) {
  py::class_<vt::Capabilities>(module, "Capabilities")
      .def_readonly("async_sampled_token_readback", &vt::Capabilities::supports_async_sampled_token_readback)
      .def_readonly("graph_capture", &vt::Capabilities::graph_capture)
      .def_readonly("batch_invariant", &vt::Capabilities::batch_invariant)
      .def_readonly("unified_memory", &vt::Capabilities::unified_memory);
  py::class_<Found>(module, "DeviceInfo")
      .def_readonly("backend", &Found::backend)
      .def_readonly("index", &Found::index)
      .def_property_readonly("name", [](const Found& found) { return found.info.name; })
      .def_property_readonly("arch", [](const Found& found) { return found.info.arch; })
      .def_property_readonly("driver", [](const Found& found) { return found.info.driver; })
      .def_property_readonly("total_memory", [](const Found& found) { return found.info.total_memory; })
      .def_property_readonly("free_memory", [](const Found& found) { return found.info.free_memory; })
      .def_property_readonly("capabilities", [](const Found& found) { return found.info.capabilities; });
  module.def("backends", backend_names);
  module.def("devices", devices, py::arg("backend"));
  module.def("attention_backends", attention_backends, py::arg("backend"));
}

}  // namespace bindings

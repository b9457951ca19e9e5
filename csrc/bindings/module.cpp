// The Python module engine._core; _core.pyi is its contract.
#include "bindings/bindings.h"
#include "vt/counters.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The compiled core of the engine.";
  pybind11::register_exception<vt::Error>(module, "CoreError", PyExc_RuntimeError);
  bindings::bind_devices(module);
  bindings::bind_weights(module);
  bindings::bind_runner(module);
  bindings::bind_ops(module);
  module.def("kernel_launches", [] {
    auto counts = vt::launch_counts();
    std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
    return counts;
  });
  module.def("reset_kernel_launches", vt::reset_launch_counts);
}

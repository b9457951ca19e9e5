// Single ops on NumPy arrays, for tests.
#include "bindings/bindings.h"

namespace bindings {

void bind_ops(py::module_&) {}

}  // namespace bindings

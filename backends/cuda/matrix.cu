// Products on tensor cores.
#include "gpu/matmul.h"

namespace vt::gpu {

bool matrix_matmul(Queue*, const Matmul&, bool) {
  return false;
}

}  // namespace vt::gpu

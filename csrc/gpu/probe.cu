// See probe.h.
#include <exception>

#include "gpu/probe.h"
#include "vendor.h"

namespace vt::gpu {
namespace {

__global__ void probe_kernel() {}

}  // namespace

bool probe() {
  try {
    vendor::launch_kernel(probe_kernel, dim3(1), dim3(1), 0, nullptr);
    vendor::synchronize(vendor::StreamHandle{});
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace vt::gpu

// Devices, memory, queues, events and graphs of a GPU, in terms of vendor.h.
#pragma once

#include "vt/platform.h"

namespace vt::gpu {

Platform platform();

}  // namespace vt::gpu

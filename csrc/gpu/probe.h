// Whether the binary holds code for a device.
#pragma once

namespace vt::gpu {

// Runs an empty kernel on the device that is selected.
bool probe();

}  // namespace vt::gpu

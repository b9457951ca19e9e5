// The CPU backend's table.
#include "vt/backend.h"

#include "device.h"
#include "reference/ops.h"

namespace vt {

extern const Backend cpu_backend;
const Backend cpu_backend{
    .name = "cpu",
    .platform = cpu::platform(),
    .ops = [](Device*, Precision) -> const OpTable& { return cpu::reference::kOps; },
    .attention = cpu::reference::kAttention,
};

}  // namespace vt

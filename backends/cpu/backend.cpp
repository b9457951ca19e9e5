// The CPU backend's table.
#include "vt/backend.h"

#include <array>

#include "device.h"
#include "fast/ops.h"
#include "reference/ops.h"

namespace vt {

namespace {

std::size_t no_workspace(Device*, const AttentionShape&) {
  return 0;
}

constexpr std::array kAttention{
    AttentionBackend{.name = "tiled",
                     .refuses = cpu::fast::tiled_refuses,
                     .workspace_bytes = no_workspace,
                     .kv_write = cpu::fast::kv_write,
                     .attention = cpu::fast::attention,
                     .key_run = 16},
    AttentionBackend{.name = "gathered",
                     .refuses = cpu::fast::gathered_refuses,
                     .workspace_bytes = no_workspace,
                     .kv_write = cpu::reference::kv_write,
                     .attention = cpu::fast::attention},
    AttentionBackend{.name = "reference",
                     .refuses = [](Device*, Precision, const AttentionShape&) { return std::string(); },
                     .workspace_bytes = no_workspace,
                     .kv_write = cpu::reference::kv_write,
                     .attention = cpu::reference::attention},
};

}  // namespace

extern const Backend cpu_backend;
const Backend cpu_backend{
    .name = "cpu",
    .platform = cpu::platform(),
    .ops = [](Device*, Precision precision) -> const OpTable& {
      return precision == Precision::fast ? cpu::fast::kOps : cpu::reference::kOps;
    },
    .attention = kAttention,
};

}  // namespace vt

// Everything the engine asks of a backend. Start reading here: a backend is one folder that defines one of these.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vt/attention.h"
#include "vt/error.h"
#include "vt/ops.h"
#include "vt/platform.h"

namespace vt {

struct Backend {
  std::string_view name;
  Platform platform;
  const OpTable& (*ops)(Device*, Precision);
  std::span<const AttentionBackend> attention;  // by falling priority
};

// Every backend compiled into this build, in folder-name order.
std::span<const Backend* const> backends();

// Throws Error, naming the ones this build has.
const Backend& backend_named(std::string_view name);

// Throws Error naming the first op of `names` that the backend lacks and `user`, who needs it.
void require(const Backend& backend, const OpTable& ops, std::span<const std::string_view> names,
             std::string_view user);

}  // namespace vt

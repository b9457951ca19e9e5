// Device memory; and that of a queue for the op that runs: its ops run one after another, so they share it.
#pragma once

#include <cstddef>

#include "vt/platform.h"

namespace vt::gpu {

// At least `bytes`. Grows by allocating, which a graph must not do: run each shape once before it is captured.
void* workspace(Queue*, std::size_t bytes);

// Device memory of its own. Throws OutOfMemory, saying how much is free.
void* allocate(Device*, std::size_t bytes);

}  // namespace vt::gpu

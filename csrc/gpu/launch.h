// Launching a kernel on a queue, counted.
#pragma once

#include "gpu/queue.h"
#include "vendor.h"
#include "vt/counters.h"

namespace vt::gpu {

struct Shape {
  dim3 blocks;
  dim3 threads;
  unsigned shared_bytes = 0;
};

template <typename... Parameters, typename... Arguments>
void launch(LaunchCounter& counter, Queue* queue, const Shape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  vendor::launch_kernel(kernel, shape.blocks, shape.threads, shape.shared_bytes, of(queue).stream,
                        std::forward<Arguments>(arguments)...);
  counter.add();
}

constexpr unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace vt::gpu

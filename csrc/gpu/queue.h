// What a device, queue, event and graph are on a GPU.
#pragma once

#include <cstddef>

#include "vendor.h"
#include "vt/platform.h"

namespace vt::gpu {

// Counters that each queue holds for blocks of one launch that wait for one another's results. Zero between launches.
constexpr unsigned kMaxArrivals = 1u << 16;

struct GpuDevice : Device {
  int index = 0;
  vendor::DeviceProperties properties;
};

struct GpuQueue : Queue {
  GpuDevice* device = nullptr;
  vendor::StreamHandle stream{};
  unsigned int* arrivals = nullptr;  // (kMaxArrivals)
  void* workspace = nullptr;         // of the op that runs
  std::size_t workspace_bytes = 0;
};

struct GpuEvent : Event {
  vendor::EventHandle handle{};
};

struct GpuGraph : Graph {
  vendor::GraphHandle handle{};
};

inline GpuQueue& of(Queue* queue) {
  return *static_cast<GpuQueue*>(queue);
}

}  // namespace vt::gpu

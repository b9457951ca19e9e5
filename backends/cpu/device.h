// The CPU as a device: its threads, and queues that run each op before they return.
#pragma once

#include "thread_pool.h"
#include "vt/platform.h"

namespace cpu {

struct CpuDevice : vt::Device {
  explicit CpuDevice(int threads) : pool(threads) {}
  ThreadPool pool;
};

struct CpuQueue : vt::Queue {
  explicit CpuQueue(CpuDevice& owner) : pool(owner.pool) {}
  ThreadPool& pool;
};

inline ThreadPool& pool_of(vt::Queue* queue) {
  return static_cast<CpuQueue*>(queue)->pool;
}

// Every field of the platform.
vt::Platform platform();

}  // namespace cpu

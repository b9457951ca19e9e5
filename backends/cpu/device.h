// The CPU as a device: its threads, and queues that run each op before they return.
#pragma once

#include "memory.h"
#include "thread_pool.h"
#include "vt/platform.h"

namespace cpu {

struct CpuDevice : vt::Device {
  explicit CpuDevice(int threads) : pool(threads) {}
  ThreadPool pool;
  Arena weights;
};

// Memory that an op needs while it runs. What it held is lost when it grows.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { release(data_); }

  template <typename T>
  T* get(std::size_t count) {
    if (count * sizeof(T) > bytes_) {
      release(data_);
      data_ = nullptr;
      bytes_ = 0;
      data_ = allocate(count * sizeof(T)).data;
      bytes_ = count * sizeof(T);
    }
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct CpuQueue : vt::Queue {
  explicit CpuQueue(CpuDevice& owner) : pool(owner.pool) {}
  ThreadPool& pool;
  Scratch activations;  // rounded to eight bits
  Scratch tiles;        // per thread
};

inline CpuQueue& cpu_queue(vt::Queue* queue) {
  return *static_cast<CpuQueue*>(queue);
}
inline ThreadPool& pool_of(vt::Queue* queue) {
  return cpu_queue(queue).pool;
}

// Every field of the platform.
vt::Platform platform();

}  // namespace cpu

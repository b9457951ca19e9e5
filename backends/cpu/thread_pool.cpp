// See thread_pool.h.
#include "thread_pool.h"

namespace cpu {
namespace {

// About 50 microseconds: longer than the gap between two ops, short enough not to steal a shared core.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { serve(thread); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_erased(Call call, const void* work) {
  if (workers_.empty()) return call(work, 0, 1);
  call_ = call;
  work_ = work;
  busy_.store(static_cast<std::int32_t>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1);
  if (sleepers_.load() > 0) round_.notify_all();
  call(work, 0, size());
  for (int spin = 0; busy_.load(std::memory_order_acquire) > 0; ++spin) {
    if (spin < kSpins) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::serve(int thread) {
  for (std::uint32_t seen = 0;;) {
    for (int spin = 0; spin < kSpins && round_.load(std::memory_order_acquire) == seen; ++spin) relax();
    if (round_.load() == seen) {
      sleepers_.fetch_add(1);
      round_.wait(seen);
      sleepers_.fetch_sub(1);
    }
    ++seen;
    if (stopping_) return;
    call_(work_, thread, size());
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace cpu

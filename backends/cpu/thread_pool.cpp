// See thread_pool.h.
#include "thread_pool.h"

namespace cpu {
namespace {

// About 50 microseconds: longer than the gap between two ops, short enough not to steal a shared core.
constexpr int kSpins = 2000;
constexpr int kShareBits = 16;

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
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this] { serve(); });
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
  done_.store(0, std::memory_order_relaxed);
  ticket_.store(((ticket_.load(std::memory_order_relaxed) >> kShareBits) + 1) << kShareBits, std::memory_order_release);
  round_.fetch_add(1);
  if (sleepers_.load() > 0) round_.notify_all();
  take_shares();
  for (int spin = 0; done_.load(std::memory_order_acquire) < size(); ++spin) {
    if (spin < kSpins) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
}

// A ticket names its round, so a thread that comes late takes nothing of a round that it doesn't know.
void ThreadPool::take_shares() {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const auto share = static_cast<int>(ticket & ((std::uint64_t{1} << kShareBits) - 1));
    if (share >= size()) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    call_(work_, share, size());
    done_.fetch_add(1, std::memory_order_release);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::serve() {
  for (std::uint32_t seen = 0;;) {
    for (int spin = 0; spin < kSpins && round_.load(std::memory_order_acquire) == seen; ++spin) relax();
    if (round_.load() == seen) {
      sleepers_.fetch_add(1);
      round_.wait(seen);
      sleepers_.fetch_sub(1);
    }
    seen = round_.load(std::memory_order_acquire);
    if (stopping_) return;
    take_shares();
  }
}

}  // namespace cpu

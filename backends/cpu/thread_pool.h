// Threads that wait for the next op by spinning a little while before they sleep. Nobody waits for a thread that the
// kernel doesn't run: whoever is there takes the shares that are left.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace cpu {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // the calling thread is one of them
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls `work(share, shares)` for as many shares as there are threads and returns when all are done. `work` must not
  // throw.
  template <typename Work>
  void run(const Work& work) {
    run_erased([](const void* self, int share, int shares) { (*static_cast<const Work*>(self))(share, shares); },
               &work);
  }

  // Calls `work(begin, end)` over contiguous shares of 0..total; on this thread alone if total is below `at_least`.
  template <typename Work>
  void split(std::int64_t total, std::int64_t at_least, const Work& work) {
    if (total <= 0) return;
    if (total < at_least || size() == 1) {
      work(std::int64_t{0}, total);
      return;
    }
    run([&](int share, int shares) {
      const std::int64_t begin = total * share / shares;
      const std::int64_t end = total * (share + 1) / shares;
      if (begin < end) work(begin, end);
    });
  }

  // Calls `work(i)` for every i of 0..total; threads take the next i as they become free.
  template <typename Work>
  void each(std::int64_t total, const Work& work) {
    if (total <= 1 || size() == 1) {
      for (std::int64_t i = 0; i < total; ++i) work(i);
      return;
    }
    std::atomic<std::int64_t> next{0};
    run([&](int, int) {
      for (std::int64_t i = next.fetch_add(1); i < total; i = next.fetch_add(1)) work(i);
    });
  }

 private:
  using Call = void (*)(const void* work, int share, int shares);

  void run_erased(Call call, const void* work);
  void serve();
  void take_shares();

  std::vector<std::thread> workers_;
  Call call_ = nullptr;
  const void* work_ = nullptr;
  bool stopping_ = false;
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
  alignas(64) std::atomic<std::uint64_t> ticket_{0};  // round, then the next share in the low 16 bits
  alignas(64) std::atomic<std::int32_t> done_{0};     // shares of this round
};

}  // namespace cpu

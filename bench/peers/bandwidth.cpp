// Bytes per second that this machine's cores can read: the limit of batch-1 decode. `bandwidth THREADS`.

#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr int kRounds = 8;

std::uint64_t sum(const std::uint64_t* data, std::size_t count) {
  std::uint64_t lanes[32] = {};
  for (std::size_t i = 0; i + 32 <= count; i += 32) {
    for (int lane = 0; lane < 32; ++lane) lanes[lane] += data[i + lane];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t lane : lanes) total += lane;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || threads < 1) return 1;
  madvise(memory, kBytes, MADV_HUGEPAGE);
  auto* data = static_cast<std::uint64_t*>(memory);
  const std::size_t count = kBytes / sizeof *data;
  for (std::size_t i = 0; i < count; ++i) data[i] = i;
  const std::size_t share = count / static_cast<std::size_t>(threads);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> pool;
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads));
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t t = 0; t < sums.size(); ++t) {
      pool.emplace_back([&, t] { sums[t] = sum(data + t * share, share); });
    }
    for (std::thread& thread : pool) thread.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    static volatile std::uint64_t sink;
    sink = sums[0];
    best = best > kBytes / seconds ? best : kBytes / seconds;
  }
  std::printf("%.0f\n", best);
}

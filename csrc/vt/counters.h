// Launch counters by kernel: cheap enough to stay on.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace vt {

// Make one per kernel as a static of the function that launches it; it enters the list on construction.
class LaunchCounter {
 public:
  explicit LaunchCounter(std::string_view kernel);
  LaunchCounter(const LaunchCounter&) = delete;
  LaunchCounter& operator=(const LaunchCounter&) = delete;

  void add(std::uint64_t launches = 1) { count_.fetch_add(launches, std::memory_order_relaxed); }

 private:
  friend std::map<std::string, std::uint64_t> launch_counts();
  friend void add_launch_counts(const std::map<std::string, std::uint64_t>& launches);
  friend void reset_launch_counts();

  std::string_view kernel_;
  std::atomic<std::uint64_t> count_{0};
  LaunchCounter* next_;
};

// Counters of the same name are added up.
std::map<std::string, std::uint64_t> launch_counts();
// For graphs: what a replay launches without passing the counters.
void add_launch_counts(const std::map<std::string, std::uint64_t>& launches);
void reset_launch_counts();

}  // namespace vt

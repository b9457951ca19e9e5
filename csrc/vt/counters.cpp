// The list of launch counters.
#include "vt/counters.h"

#include <mutex>

namespace vt {
namespace {

std::mutex list_mutex;
LaunchCounter* list_head = nullptr;

}  // namespace

LaunchCounter::LaunchCounter(std::string_view kernel) : kernel_(kernel) {
  const std::lock_guard lock(list_mutex);
  next_ = list_head;
  list_head = this;
}

std::map<std::string, std::uint64_t> launch_counts() {
  const std::lock_guard lock(list_mutex);
  std::map<std::string, std::uint64_t> counts;
  for (const LaunchCounter* counter = list_head; counter; counter = counter->next_) {
    counts[std::string(counter->kernel_)] += counter->count_.load(std::memory_order_relaxed);
  }
  return counts;
}

void add_launch_counts(const std::map<std::string, std::uint64_t>& launches) {
  const std::lock_guard lock(list_mutex);
  auto rest = launches;
  for (LaunchCounter* counter = list_head; counter; counter = counter->next_) {
    const auto found = rest.find(std::string(counter->kernel_));
    if (found == rest.end()) continue;
    counter->add(found->second);
    rest.erase(found);
  }
}

void reset_launch_counts() {
  const std::lock_guard lock(list_mutex);
  for (LaunchCounter* counter = list_head; counter; counter = counter->next_) counter->count_ = 0;
}

}  // namespace vt

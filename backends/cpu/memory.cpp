// See memory.h.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "vt/error.h"

namespace cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

std::size_t meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string name, rest; file >> name; std::getline(file, rest)) {
    std::size_t kib = 0;
    if (name == key + ":" && file >> kib) return kib * 1024;
  }
  return 0;
}

// What a control group leaves; the largest number there is where none limits.
std::size_t group_limit(const char* limit_path) {
  std::ifstream file(limit_path);
  std::size_t bytes = 0;
  return file >> bytes ? bytes : std::numeric_limits<std::size_t>::max();
}

std::size_t group_limit() {
  return std::min(group_limit("/sys/fs/cgroup/memory.max"), group_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

}  // namespace

std::size_t total_memory() {
  const std::size_t installed = meminfo("MemTotal");
  return std::min(installed ? installed : std::numeric_limits<std::size_t>::max(), group_limit());
}

std::size_t free_memory() {
  const std::size_t available = meminfo("MemAvailable");
  return std::min(available ? available : std::numeric_limits<std::size_t>::max(), group_limit());
}

Allocation allocate(std::size_t bytes) {
  const bool large = bytes >= kHugePage;
  if (large && bytes > free_memory()) {
    throw vt::OutOfMemory("cannot allocate " + std::to_string(bytes) + " bytes: only " + std::to_string(free_memory()) +
                          " are free");
  }
  const std::size_t alignment = large ? kHugePage : 64;
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), alignment);
  void* data = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (!data) throw vt::OutOfMemory("cannot allocate " + std::to_string(bytes) + " bytes");
  bool huge = false;
#ifdef MADV_HUGEPAGE
  huge = large && madvise(data, size, MADV_HUGEPAGE) == 0;
#endif
  return {data, huge};
}

void release(void* memory) {
  std::free(memory);
}

}  // namespace cpu

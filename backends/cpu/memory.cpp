// See memory.h.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "vt/error.h"

namespace cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPiece = 4 * kHugePage;
constexpr std::size_t kLine = 64;

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

Allocation allocate(std::size_t bytes, bool huge_pages) {
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
  huge = huge_pages && large && madvise(data, size, MADV_HUGEPAGE) == 0;
#endif
  return {data, huge};
}

Arena::~Arena() {
  for (const Piece& piece : pieces_) release(piece.data);
}

Allocation Arena::take(std::size_t bytes) {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), kLine);
  const auto roomy = std::find_if(pieces_.begin(), pieces_.end(),
                                  [size](const Piece& piece) { return piece.bytes - piece.used >= size; });
  if (roomy != pieces_.end()) return use(*roomy, size);
  const std::size_t piece = round_up(std::max(size, kPiece), kHugePage);
  const Allocation memory = allocate(piece, true);
  pieces_.push_back({.data = static_cast<char*>(memory.data), .bytes = piece, .huge_pages = memory.huge_pages});
  return use(pieces_.back(), size);
}

Allocation Arena::use(Piece& piece, std::size_t size) {
  void* data = piece.data + piece.used;
  piece.used += size;
  ++piece.arrays;
  return {data, piece.huge_pages};
}

void Arena::give(void* memory) {
  const auto owner = std::find_if(pieces_.begin(), pieces_.end(), [memory](const Piece& piece) {
    return memory >= piece.data && memory < piece.data + piece.bytes;
  });
  if (owner == pieces_.end() || --owner->arrays > 0) return;
  release(owner->data);
  pieces_.erase(owner);
}

void release_file_pages(const void* memory, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = round_up(reinterpret_cast<std::size_t>(memory), page);
  const std::size_t end = (reinterpret_cast<std::size_t>(memory) + bytes) / page * page;
  if (begin >= end) return;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t first = 0, last = 0, offset = 0, inode = 0;
    char rights[5] = {};
    unsigned major = 0, minor = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx %4s %zx %x:%x %zu", &first, &last, rights, &offset, &major, &minor,
                    &inode) != 7) {
      continue;
    }
    if (begin < first || end > last) continue;
    if (inode != 0 && rights[0] == 'r' && rights[1] == '-') {
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return;
  }
}

void release(void* memory) {
  std::free(memory);
}

}  // namespace cpu

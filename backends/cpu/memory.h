// Memory that large arrays are streamed from: huge pages where the kernel allows them.
#pragma once

#include <cstddef>
#include <vector>

namespace cpu {

struct Allocation {
  void* data;
  bool huge_pages;  // asked for and granted by the kernel
};

// Throws vt::OutOfMemory. Aligned to 64 bytes, large blocks to 2 MiB.
// Huge pages only for what is filled from end to end: elsewhere each touched byte would cost two megabytes.
Allocation allocate(std::size_t bytes, bool huge_pages = false);
void release(void* memory);

// Many arrays in few large pieces, so that they lie in huge pages. A piece goes when its last array went.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  Allocation take(std::size_t bytes);
  void give(void* memory);

 private:
  struct Piece {
    char* data;
    std::size_t bytes;
    std::size_t used = 0;
    int arrays = 0;
    bool huge_pages;
  };
  Allocation use(Piece& piece, std::size_t size);

  std::vector<Piece> pieces_;
};

// Lets go of the resident pages of a read-only mapping of a file; the file stays readable. Other memory is left alone.
void release_file_pages(const void* memory, std::size_t bytes);

std::size_t total_memory();
std::size_t free_memory();  // what could be had now without swapping

}  // namespace cpu

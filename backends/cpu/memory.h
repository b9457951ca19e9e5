// Memory that large arrays are streamed from: huge pages where the kernel allows them.
#pragma once

#include <cstddef>

namespace cpu {

struct Allocation {
  void* data;
  bool huge_pages;  // asked for and granted by the kernel
};

// Throws vt::OutOfMemory. Aligned to 64 bytes, large blocks to 2 MiB.
Allocation allocate(std::size_t bytes);
void release(void* memory);

std::size_t total_memory();
std::size_t free_memory();  // what could be had now without swapping

}  // namespace cpu

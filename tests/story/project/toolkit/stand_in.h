// Runs a kernel on the processor, a thread after another.
#pragma once

#include <cstdlib>
#include <cstring>
#include <utility>

#define __global__

namespace stand_in {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};
inline Dim block_index, block_size, thread_index;

template <typename Kernel>
auto launch(Kernel kernel, unsigned grid, unsigned block, unsigned, void*) {
  return [=](auto... arguments) {
    block_size.x = block;
    for (block_index.x = 0; block_index.x < grid; ++block_index.x) {
      for (thread_index.x = 0; thread_index.x < block; ++thread_index.x) kernel(arguments...);
    }
  };
}

template <typename Pointer>
int allocate(Pointer** pointer, std::size_t bytes) {
  *pointer = static_cast<Pointer*>(std::calloc(1, bytes));
  return *pointer == nullptr;
}

}  // namespace stand_in

inline const stand_in::Dim& blockIdx = stand_in::block_index;
inline const stand_in::Dim& blockDim = stand_in::block_size;
inline const stand_in::Dim& threadIdx = stand_in::thread_index;

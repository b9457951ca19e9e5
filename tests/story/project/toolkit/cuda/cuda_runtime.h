// The part of the CUDA runtime that the port uses, on the processor.
#pragma once

#include "stand_in.h"

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyDefault };

template <typename Pointer>
cudaError_t cudaMalloc(Pointer** pointer, std::size_t bytes) {
  return stand_in::allocate(pointer, bytes) ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* pointer) { return std::free(pointer), cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) { return "out of memory"; }

// The part of the HIP runtime that the port uses, on the processor.
#pragma once

#include "stand_in.h"

using hipStream_t = void*;
enum hipError_t { hipSuccess, hipErrorOutOfMemory };
enum hipMemcpyKind { hipMemcpyDefault };

template <typename Pointer>
hipError_t hipMalloc(Pointer** pointer, std::size_t bytes) {
  return stand_in::allocate(pointer, bytes) ? hipErrorOutOfMemory : hipSuccess;
}
inline hipError_t hipFree(void* pointer) { return std::free(pointer), hipSuccess; }
inline hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind) {
  return std::memcpy(to, from, bytes), hipSuccess;
}
inline const char* hipGetErrorString(hipError_t) { return "out of memory"; }

// Copies and fills. All memory is the host's, so the direction only matters for what is checked.

#include <cstring>

#include "runtime.h"

using namespace greenlane;

namespace {

// What must lie inside a live allocation for a copy of this direction; a copy into or out of bad memory is refused.
bool inside(const void* pointer, size_t size) {
  const Allocation* found = find_allocation(pointer);
  return found && (uint64_t)pointer + size <= found->begin + found->size;
}

hipError_t check(void* to, const void* from, size_t size, hipMemcpyKind kind) {
  if (size == 0) return hipSuccess;
  if (!to || !from) return hipErrorInvalidValue;
  if (kind < hipMemcpyHostToHost || (kind > hipMemcpyDefault && kind != hipMemcpyDeviceToDeviceNoCU))
    return hipErrorInvalidMemcpyDirection;
  const bool to_device =
      kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice || kind == hipMemcpyDeviceToDeviceNoCU;
  const bool from_device =
      kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice || kind == hipMemcpyDeviceToDeviceNoCU;
  // Memory that lies half in an allocation is bad in every direction.
  if ((to_device || find_allocation(to)) && !inside(to, size)) return hipErrorInvalidValue;
  if ((from_device || find_allocation(from)) && !inside(from, size)) return hipErrorInvalidValue;
  return hipSuccess;
}

hipError_t copy(void* to, const void* from, size_t size, hipMemcpyKind kind, Stream* stream, bool wait) {
  Lock lock(runtime_mutex());
  if (!stream) return note(hipErrorInvalidHandle);
  if (hipError_t status = check(to, from, size, kind); status != hipSuccess) return note(status);
  const hipError_t status = submit(stream, [=] { return std::memmove(to, from, size), hipSuccess; });
  if (status != hipSuccess) return note(status);
  const bool staged =
      copies_to_pageable_host(to) || copies_to_pageable_host(from);  // pageable memory is copied at once
  return note((wait || staged) && !stream->capture ? drain(stream) : hipSuccess);
}

template <class T>
hipError_t fill(void* to, T value, size_t count, Stream* stream, bool wait) {
  Lock lock(runtime_mutex());
  if (!stream) return note(hipErrorInvalidHandle);
  if (count == 0) return hipSuccess;
  if (!inside(to, count * sizeof(T))) return note(hipErrorInvalidValue);
  const hipError_t status = submit(stream, [=] { return std::fill_n((T*)to, count, value), hipSuccess; });
  if (status != hipSuccess) return note(status);
  return note(wait && !stream->capture ? drain(stream) : hipSuccess);
}

hipError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   Stream* stream, bool wait) {
  Lock lock(runtime_mutex());
  if (!stream) return note(hipErrorInvalidHandle);
  if (width == 0 || height == 0) return hipSuccess;
  if (!to || !from || width > to_pitch || width > from_pitch) return note(hipErrorInvalidValue);
  const hipError_t status = submit(stream, [=] {
    for (size_t row = 0; row < height; row++)
      std::memmove((char*)to + row * to_pitch, (const char*)from + row * from_pitch, width);
    return hipSuccess;
  });
  if (status != hipSuccess) return note(status);
  return note(wait && !stream->capture ? drain(stream) : hipSuccess);
}

Stream* null_stream() {
  return stream_of(nullptr);
}

}  // namespace

namespace greenlane {
hipError_t copy_now(void* to, const void* from, size_t size, hipMemcpyKind kind) {
  return copy(to, from, size, kind, null_stream(), true);
}
hipError_t copy_later(void* to, const void* from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
  return copy(to, from, size, kind, stream_of(stream), false);
}
}  // namespace greenlane

extern "C" {

hipError_t hipMemcpy(void* to, const void* from, size_t size, hipMemcpyKind kind) {
  return copy_now(to, from, size, kind);
}
hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
  return copy_later(to, from, size, kind, stream);
}
hipError_t hipMemcpyWithStream(void* to, const void* from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
  return copy(to, from, size, kind, stream_of(stream), true);
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void* from, size_t size) {
  return copy_now(to, from, size, hipMemcpyHostToDevice);
}
hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t size) {
  return copy_now(to, from, size, hipMemcpyDeviceToHost);
}
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t size) {
  return copy_now(to, from, size, hipMemcpyDeviceToDevice);
}
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t size, hipStream_t stream) {
  return copy_later(to, from, size, hipMemcpyHostToDevice, stream);
}
hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
  return copy_later(to, from, size, hipMemcpyDeviceToHost, stream);
}
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
  return copy_later(to, from, size, hipMemcpyDeviceToDevice, stream);
}
hipError_t hipMemcpyPeer(void* to, int, const void* from, int, size_t size) {
  return copy_now(to, from, size, hipMemcpyDeviceToDevice);
}
hipError_t hipMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, hipStream_t stream) {
  return copy_later(to, from, size, hipMemcpyDeviceToDevice, stream);
}
hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                       hipMemcpyKind) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height, null_stream(), true);
}
hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            hipMemcpyKind, hipStream_t stream) {
  return copy_2d(to, to_pitch, from, from_pitch, width, height, stream_of(stream), false);
}

hipError_t hipMemset(void* to, int value, size_t size) {
  return fill(to, (uint8_t)value, size, null_stream(), true);
}
hipError_t hipMemsetAsync(void* to, int value, size_t size, hipStream_t stream) {
  return fill(to, (uint8_t)value, size, stream_of(stream), false);
}
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  return fill(to, (uint8_t)value, count, null_stream(), true);
}
hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
  return fill(to, (uint16_t)value, count, null_stream(), true);
}
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return fill(to, (uint32_t)value, count, null_stream(), true);
}
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream) {
  return fill(to, (uint8_t)value, count, stream_of(stream), false);
}
hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream) {
  return fill(to, (uint16_t)value, count, stream_of(stream), false);
}
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  return fill(to, (uint32_t)value, count, stream_of(stream), false);
}
hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++)
    if (hipError_t status = hipMemset((char*)to + row * pitch, value, width); status != hipSuccess) return status;
  return hipSuccess;
}

}  // extern "C"

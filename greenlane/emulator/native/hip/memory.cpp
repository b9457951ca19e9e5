// Allocations: all of them are the host's memory, in a table by address.

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <shared_mutex>

#include "runtime.h"

namespace greenlane {

void count_memory(int64_t bytes);
size_t free_memory();

namespace {

constexpr size_t kAlignment = 256;

struct Table {
  std::map<uint64_t, Allocation> live;  // by begin
  std::deque<Allocation> freed;         // the last ones, for better messages
  mutable std::shared_mutex mutex;      // kernels look up while they run
};

Table& table() {
  static Table& table = *new Table;
  return table;
}

// A zero-sized request still gets an address of its own. In sanitizer mode fresh memory holds NaNs, not zeros.
void* fresh(size_t size) {
  const size_t rounded = (size + kAlignment + kSlack) / kAlignment * kAlignment;
  void* pointer = std::aligned_alloc(kAlignment, rounded);
  if (pointer && settings().sanitize) std::memset(pointer, 0xff, rounded);
  return pointer;
}

hipError_t allocate(void** pointer, size_t size, Home home, unsigned flags = 0) {
  if (!pointer) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  *pointer = nullptr;
  if (size == 0) return hipSuccess;
  if (size > free_memory()) return note(hipErrorOutOfMemory);
  *pointer = fresh(size);
  if (!*pointer) return note(hipErrorOutOfMemory);
  add_allocation(*pointer, size, home, flags);
  if (home == Home::kDevice) count_memory((int64_t)size);
  return hipSuccess;
}

hipError_t release(void* pointer, bool host) {
  if (!pointer) return hipSuccess;
  Lock lock(runtime_mutex());
  const Allocation* found = find_allocation(pointer);
  if (!found || found->begin != (uint64_t)pointer || found->home == Home::kRegistered || found->home == Home::kCode)
    return note(hipErrorInvalidValue);
  if (host != (found->home == Home::kHost)) return note(hipErrorInvalidValue);
  if (hipError_t status = drain_all(); status != hipSuccess) return note(status);
  if (found->home == Home::kDevice) count_memory(-(int64_t)found->size);
  remove_allocation(pointer);
  std::free(pointer);
  return hipSuccess;
}

}  // namespace

const Allocation* find_allocation(const void* pointer) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  const uint64_t address = (uint64_t)pointer;
  auto after = t.live.upper_bound(address);
  if (after == t.live.begin()) return nullptr;
  const Allocation& before = std::prev(after)->second;
  return address - before.begin < before.size ? &before : nullptr;
}

Allocation add_allocation(void* pointer, size_t size, Home home, unsigned flags) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  return t.live[(uint64_t)pointer] = {(uint64_t)pointer, size, home, flags};
}

bool remove_allocation(const void* pointer) {
  Table& t = table();
  std::unique_lock lock(t.mutex);
  auto found = t.live.find((uint64_t)pointer);
  if (found == t.live.end()) return false;
  t.freed.push_front(found->second);
  if (t.freed.size() > 64) t.freed.pop_back();
  t.live.erase(found);
  return true;
}

std::string describe_address(uint64_t address) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  for (const Allocation& gone : t.freed)
    if (address - gone.begin < gone.size)
      return "in an allocation of " + std::to_string(gone.size) + " bytes that was freed";
  auto after = t.live.upper_bound(address);
  if (after != t.live.begin()) {
    const Allocation& before = std::prev(after)->second;
    const uint64_t past = address - before.begin;
    if (past < before.size)
      return "at byte " + std::to_string(past) + " of an allocation of " + std::to_string(before.size) + " bytes";
    if (past - before.size < 1 << 20)
      return std::to_string(past - before.size) + " bytes past the end of an allocation of " +
             std::to_string(before.size) + " bytes";
  }
  if (after != t.live.end() && after->second.begin - address < 1 << 20)
    return std::to_string(after->second.begin - address) + " bytes before an allocation of " +
           std::to_string(after->second.size) + " bytes";
  return address < 4096 ? "a null pointer" : "in no allocation";
}

bool copies_to_pageable_host(const void* pointer) {
  return find_allocation(pointer) == nullptr;
}

}  // namespace greenlane

using namespace greenlane;

extern "C" {

hipError_t hipMalloc(void** pointer, size_t size) {
  return allocate(pointer, size, Home::kDevice);
}
hipError_t hipExtMallocWithFlags(void** pointer, size_t size, unsigned flags) {
  return allocate(pointer, size, Home::kDevice, flags);
}
hipError_t hipMallocManaged(void** pointer, size_t size, unsigned flags) {
  return allocate(pointer, size, Home::kManaged, flags);
}
hipError_t hipHostMalloc(void** pointer, size_t size, unsigned flags) {
  return allocate(pointer, size, Home::kHost, flags);
}
hipError_t hipHostAlloc(void** pointer, size_t size, unsigned flags) {
  return allocate(pointer, size, Home::kHost, flags);
}
hipError_t hipMallocHost(void** pointer, size_t size) {
  return allocate(pointer, size, Home::kHost);
}
hipError_t hipMemAllocHost(void** pointer, size_t size) {
  return allocate(pointer, size, Home::kHost);
}
hipError_t hipMallocAsync(void** pointer, size_t size, hipStream_t) {
  return allocate(pointer, size, Home::kDevice);
}
hipError_t hipMallocFromPoolAsync(void** pointer, size_t size, hipMemPool_t, hipStream_t) {
  return allocate(pointer, size, Home::kDevice);
}
hipError_t hipFree(void* pointer) {
  return release(pointer, false);
}
hipError_t hipFreeAsync(void* pointer, hipStream_t) {
  return release(pointer, false);
}
hipError_t hipHostFree(void* pointer) {
  return release(pointer, true);
}
hipError_t hipFreeHost(void* pointer) {
  return release(pointer, true);
}

hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + kAlignment - 1) / kAlignment * kAlignment;
  return allocate(pointer, *pitch * height, Home::kDevice);
}

hipError_t hipHostRegister(void* pointer, size_t size, unsigned flags) {
  if (!pointer || !size) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  if (find_allocation(pointer)) return note(hipErrorHostMemoryAlreadyRegistered);
  add_allocation(pointer, size, Home::kRegistered, flags);
  return hipSuccess;
}
hipError_t hipHostUnregister(void* pointer) {
  Lock lock(runtime_mutex());
  const Allocation* found = find_allocation(pointer);
  if (!found || found->home != Home::kRegistered) return note(hipErrorHostMemoryNotRegistered);
  if (hipError_t status = drain_all(); status != hipSuccess) return note(status);
  remove_allocation(pointer);
  return hipSuccess;
}
hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned) {
  if (!device || !find_allocation(host)) return note(hipErrorInvalidValue);
  *device = host;
  return hipSuccess;
}
hipError_t hipHostGetFlags(unsigned* flags, void* pointer) {
  const Allocation* found = find_allocation(pointer);
  if (!found) return note(hipErrorInvalidValue);
  *flags = found->flags;
  return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  if (!attributes || !pointer) return note(hipErrorInvalidValue);
  std::memset(attributes, 0, sizeof *attributes);
  const Allocation* found = find_allocation(pointer);
  attributes->device = found ? 0 : -2;
  attributes->type = !found                                                           ? hipMemoryTypeUnregistered
                     : found->home == Home::kManaged                                  ? hipMemoryTypeManaged
                     : found->home == Home::kHost || found->home == Home::kRegistered ? hipMemoryTypeHost
                                                                                      : hipMemoryTypeDevice;
  if (!found) return hipSuccess;
  attributes->devicePointer = (void*)pointer;
  attributes->hostPointer = attributes->type == hipMemoryTypeDevice ? nullptr : (void*)pointer;
  attributes->isManaged = found->home == Home::kManaged;
  attributes->allocationFlags = found->flags;
  return hipSuccess;
}
hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* size, hipDeviceptr_t pointer) {
  const Allocation* found = find_allocation(pointer);
  if (!found) return note(hipErrorNotFound);
  if (base) *base = (hipDeviceptr_t)found->begin;
  if (size) *size = found->size;
  return hipSuccess;
}
hipError_t hipMemPtrGetInfo(void* pointer, size_t* size) {
  return hipMemGetAddressRange(nullptr, size, pointer);
}

hipError_t hipMemAdvise(const void*, size_t, hipMemoryAdvise, int) {
  return hipSuccess;
}
hipError_t hipMemPrefetchAsync(const void*, size_t, int, hipStream_t) {
  return hipSuccess;
}
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int) {
  return *pool = (hipMemPool_t)&table(), hipSuccess;
}
hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int) {
  return *pool = (hipMemPool_t)&table(), hipSuccess;
}
hipError_t hipDeviceSetMemPool(int, hipMemPool_t) {
  return hipSuccess;
}
hipError_t hipMemPoolSetAttribute(hipMemPool_t, hipMemPoolAttr, void*) {
  return hipSuccess;
}
hipError_t hipMemPoolTrimTo(hipMemPool_t, size_t) {
  return hipSuccess;
}

}  // extern "C"

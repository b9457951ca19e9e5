// What csrc/gpu asks of HIP. The include path decides which vendor.h a kernel gets; both declare the same names.
#pragma once

#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace vt::gpu::vendor {

using StreamHandle = hipStream_t;
using EventHandle = hipEvent_t;
using GraphHandle = hipGraphExec_t;

inline constexpr const char* kBackendName = "rocm";
inline constexpr const char* kArchitectureOption = "CMAKE_HIP_ARCHITECTURES";

struct NoMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(hipError_t status, const char* what) {
  if (status == hipSuccess) return;
  (void)hipGetLastError();
  std::string message = std::string(what) + ": " + hipGetErrorString(status);
  if (status == hipErrorOutOfMemory) throw NoMemory(message);
  throw std::runtime_error(message);
}

inline int device_count() {
  int count = 0;
  if (hipGetDeviceCount(&count) == hipSuccess) return count;
  (void)hipGetLastError();
  return 0;
}

inline void set_device(int index) {
  check(hipSetDevice(index), "select device");
}

struct DeviceProperties {
  std::string name;
  std::string arch;
  std::string driver;
  int multiprocessors = 0;
  int shared_memory_per_block = 0;  // bytes
  bool integrated = false;
};

inline DeviceProperties properties(int index) {
  hipDeviceProp_t found{};
  check(hipGetDeviceProperties(&found, index), "device properties");
  int driver = 0;
  check(hipDriverGetVersion(&driver), "driver version");
  const std::string target = found.gcnArchName;  // "gfx90a:sramecc+:xnack-"
  return {found.name,
          target.substr(0, target.find(':')),
          std::to_string(driver),
          found.multiProcessorCount,
          static_cast<int>(found.sharedMemPerBlock),
          found.integrated != 0};
}

inline void memory_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  check(hipMemGetInfo(free_bytes, total_bytes), "memory info");
}

inline void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(hipMalloc(&memory, bytes), "allocate device memory");
  return memory;
}
inline void release(void* memory) noexcept {
  (void)hipFree(memory);
}

inline void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(hipHostMalloc(&memory, bytes, hipHostMallocDefault), "allocate pinned memory");
  return memory;
}
inline void release_pinned(void* memory) noexcept {
  (void)hipHostFree(memory);
}

inline void copy_async(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
  check(hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream), "copy");
}
inline void fill_async(void* to, int byte, std::size_t bytes, StreamHandle stream) {
  check(hipMemsetAsync(to, byte, bytes, stream), "fill");
}

inline StreamHandle make_stream() {
  StreamHandle stream{};
  check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "create stream");
  return stream;
}
inline void destroy_stream(StreamHandle stream) noexcept {
  (void)hipStreamDestroy(stream);
}
inline void synchronize(StreamHandle stream) {
  check(hipStreamSynchronize(stream), "synchronize");
}

inline EventHandle make_event() {
  EventHandle event{};
  check(hipEventCreateWithFlags(&event, hipEventDisableTiming), "create event");
  return event;
}
inline void destroy_event(EventHandle event) noexcept {
  (void)hipEventDestroy(event);
}
inline void record(EventHandle event, StreamHandle stream) {
  check(hipEventRecord(event, stream), "record event");
}
inline void wait_event(StreamHandle stream, EventHandle event) {
  check(hipStreamWaitEvent(stream, event, 0), "wait for event");
}
inline void synchronize(EventHandle event) {
  check(hipEventSynchronize(event), "wait for the device");
}
inline bool finished(EventHandle event) {
  const hipError_t status = hipEventQuery(event);
  if (status == hipErrorNotReady) return false;
  check(status, "query event");
  return true;
}

inline void begin_capture(StreamHandle stream) {
  check(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal), "begin graph capture");
}
inline GraphHandle end_capture(StreamHandle stream) {
  hipGraph_t graph{};
  check(hipStreamEndCapture(stream, &graph), "end graph capture");
  GraphHandle executable{};
  const hipError_t status = hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0);
  (void)hipGraphDestroy(graph);
  check(status, "instantiate graph");
  return executable;
}
inline void replay(GraphHandle graph, StreamHandle stream) {
  check(hipGraphLaunch(graph, stream), "replay graph");
}
inline void destroy_graph(GraphHandle graph) noexcept {
  (void)hipGraphExecDestroy(graph);
}

}  // namespace vt::gpu::vendor

#ifdef __HIP__
namespace vt::gpu::vendor {

template <typename... Parameters, typename... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, unsigned shared_bytes, StreamHandle stream,
                   Arguments&&... arguments) {
  kernel<<<blocks, threads, shared_bytes, stream>>>(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  check(hipGetLastError(), "launch");
}

template <typename... Parameters>
void allow_shared(void (*)(Parameters...), unsigned) {}  // HIP grants a block all of its local memory unasked

// Lanes that exchange registers: a group that lies whole inside any wavefront of either vendor.
inline constexpr int kLanes = 32;

__device__ inline float shuffle_xor(float value, int mask) {
  return __shfl_xor(value, mask, kLanes);
}
__device__ inline int shuffle_xor(int value, int mask) {
  return __shfl_xor(value, mask, kLanes);
}
__device__ inline float shuffle(float value, int lane) {
  return __shfl(value, lane, kLanes);
}

// HIP kernels of one stream run one after another.
__device__ inline void wait_for_predecessor() {}
__device__ inline void let_successor_start() {}

// What another block of this launch wrote, after __threadfence().
__device__ inline float load_fresh(const float* address) {
  return *address;
}

// Second argument of __launch_bounds__: HIP counts waves per SIMD there, so nothing is asked for.
constexpr int resident_blocks(int) {
  return 1;
}

__device__ inline void prefetch(const void*) {}

// 16 bytes that are read once: weights.
__device__ inline uint4 load_once(const void* address) {
  return *static_cast<const uint4*>(address);
}

__device__ inline float half_to_float(std::uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
__device__ inline std::uint16_t float_to_half(float value) {
  return __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(value));
}

}  // namespace vt::gpu::vendor
#endif

// What csrc/gpu asks of CUDA. The include path decides which vendor.h a kernel gets; both declare the same names.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace vt::gpu::vendor {

using StreamHandle = cudaStream_t;
using EventHandle = cudaEvent_t;
using GraphHandle = cudaGraphExec_t;

inline constexpr const char* kBackendName = "cuda";
inline constexpr const char* kArchitectureOption = "CMAKE_CUDA_ARCHITECTURES";

struct NoMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  std::string message = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) throw NoMemory(message);
  throw std::runtime_error(message);
}

inline int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

inline void set_device(int index) {
  check(cudaSetDevice(index), "select device");
}

struct DeviceProperties {
  std::string name;
  std::string arch;
  std::string driver;
  int multiprocessors = 0;
  int shared_memory_per_block = 0;  // bytes, opt-in limit
  bool integrated = false;
};

inline DeviceProperties properties(int index) {
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, index), "device properties");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "driver version");
  return {found.name,
          "sm_" + std::to_string(found.major) + std::to_string(found.minor),
          std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10),
          found.multiProcessorCount,
          static_cast<int>(found.sharedMemPerBlockOptin),
          found.integrated != 0};
}

inline void memory_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  check(cudaMemGetInfo(free_bytes, total_bytes), "memory info");
}

inline void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "allocate device memory");
  return memory;
}
inline void release(void* memory) noexcept {
  cudaFree(memory);
}

inline void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "allocate pinned memory");
  return memory;
}
inline void release_pinned(void* memory) noexcept {
  cudaFreeHost(memory);
}

inline void copy_async(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copy");
}
inline void fill_async(void* to, int byte, std::size_t bytes, StreamHandle stream) {
  check(cudaMemsetAsync(to, byte, bytes, stream), "fill");
}

inline StreamHandle make_stream() {
  StreamHandle stream{};
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create stream");
  return stream;
}
inline void destroy_stream(StreamHandle stream) noexcept {
  cudaStreamDestroy(stream);
}
inline void synchronize(StreamHandle stream) {
  check(cudaStreamSynchronize(stream), "synchronize");
}

inline EventHandle make_event() {
  EventHandle event{};
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "create event");
  return event;
}
inline void destroy_event(EventHandle event) noexcept {
  cudaEventDestroy(event);
}
inline void record(EventHandle event, StreamHandle stream) {
  check(cudaEventRecord(event, stream), "record event");
}
inline void wait_event(StreamHandle stream, EventHandle event) {
  check(cudaStreamWaitEvent(stream, event), "wait for event");
}
inline void synchronize(EventHandle event) {
  check(cudaEventSynchronize(event), "wait for the device");
}
inline bool finished(EventHandle event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) return false;
  check(status, "query event");
  return true;
}

inline void begin_capture(StreamHandle stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin graph capture");
}
inline GraphHandle end_capture(StreamHandle stream) {
  cudaGraph_t graph{};
  check(cudaStreamEndCapture(stream, &graph), "end graph capture");
  GraphHandle executable{};
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "instantiate graph");
  return executable;
}
inline void replay(GraphHandle graph, StreamHandle stream) {
  check(cudaGraphLaunch(graph, stream), "replay graph");
}
inline void destroy_graph(GraphHandle graph) noexcept {
  cudaGraphExecDestroy(graph);
}

}  // namespace vt::gpu::vendor

#ifdef __CUDACC__
namespace vt::gpu::vendor {

inline bool overlaps_launches() {
  static const bool supported = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
  }();
  return supported;
}

template <typename... Parameters, typename... Arguments>
void launch_with(cudaLaunchAttribute attribute, bool attributed, void (*kernel)(Parameters...), dim3 blocks,
                 dim3 threads, unsigned shared_bytes, StreamHandle stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = attributed ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...), "launch");
}

// Launches with programmatic stream serialisation: the kernel may start before its predecessor ends, so every kernel
// calls wait_for_predecessor() before it touches what an earlier one wrote or reads.
template <typename... Parameters, typename... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, unsigned shared_bytes, StreamHandle stream,
                   Arguments&&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  launch_with(overlap, overlaps_launches(), kernel, blocks, threads, shared_bytes, stream,
              std::forward<Arguments>(arguments)...);
}

// All blocks run at once, so that they may wait for one another; the launch fails where they can't.
template <typename... Parameters, typename... Arguments>
void launch_cooperative(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, unsigned shared_bytes,
                        StreamHandle stream, Arguments&&... arguments) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  launch_with(cooperative, true, kernel, blocks, threads, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

template <typename... Parameters>
void allow_shared(void (*kernel)(Parameters...), unsigned bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "raise the shared-memory limit");
}

// Lanes that exchange registers: a group that lies whole inside any wavefront of either vendor.
inline constexpr int kLanes = 32;

__device__ inline float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask, kLanes);
}
__device__ inline int shuffle_xor(int value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask, kLanes);
}
__device__ inline float shuffle(float value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane, kLanes);
}

__device__ inline void wait_for_predecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void let_successor_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// What another block of this launch wrote, after __threadfence().
__device__ inline float load_fresh(const float* address) {
  return __ldcg(address);
}

// Second argument of __launch_bounds__: blocks that a multiprocessor shall hold.
constexpr int resident_blocks(int blocks) {
  return blocks;
}

__device__ inline void prefetch(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// 16 bytes that are read once and never written while the kernel may run: weights.
__device__ inline uint4 load_once(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

__device__ inline float half_to_float(std::uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ inline std::uint16_t float_to_half(float value) {
  return __half_as_ushort(__float2half_rn(value));
}

}  // namespace vt::gpu::vendor
#endif

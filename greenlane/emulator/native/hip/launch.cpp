// Launching kernels: configuration, arguments, occupancy.

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "runtime.h"

namespace greenlane {

Function* function_of(const void* host);
bool lacks_code(const void* host);

namespace {

struct Configuration {
  dim3 grid, block;
  size_t lds;
  hipStream_t stream;
};
thread_local std::vector<Configuration> configurations;

uint64_t volume(dim3 d) {
  return uint64_t{d.x} * d.y * d.z;
}

hipError_t missing(const void* host) {
  return note(lacks_code(host) ? hipErrorNoBinaryForGpu : hipErrorInvalidDeviceFunction);
}

// The value of a hidden argument.
uint64_t hidden(uint32_t kind, const Launch& launch) {
  switch (kind) {
    case kBlockCountX:
      return launch.grid.x;
    case kBlockCountY:
      return launch.grid.y;
    case kBlockCountZ:
      return launch.grid.z;
    case kGroupSizeX:
      return launch.block.x;
    case kGroupSizeY:
      return launch.block.y;
    case kGroupSizeZ:
      return launch.block.z;
    case kGridDims:
      return launch.grid.z * launch.block.z > 1 ? 3 : launch.grid.y * launch.block.y > 1 ? 2 : 1;
    case kDynamicLds:
      return launch.dynamic_lds;
    case kPrivateBase:
      return kPrivateAperture >> 32;
    case kSharedBase:
      return kSharedAperture >> 32;
    case kHeap:
    case kHostCalls:
    case kGridSync:
      return missing_service(kind);
    default:
      return 0;
  }
}

void fill_hidden(const Kernel& kernel, Launch& launch) {
  launch.kernarg.resize(std::max<size_t>(launch.kernarg.size(), kernel.kernarg_bytes + kSlack));
  for (uint32_t i = 0; i < kernel.argument_count; i++) {
    const Argument& argument = kernel.arguments[i];
    if (argument.kind == kByValue) continue;
    const uint64_t value = hidden(argument.kind, launch);
    std::memcpy(launch.kernarg.data() + argument.offset, &value, std::min<uint32_t>(argument.size, 8));
  }
}

}  // namespace

hipError_t check_launch(Function& function, dim3 grid, dim3 block, size_t dynamic_lds) {
  const Kernel& kernel = compiled(function);
  if (volume(grid) == 0 || volume(block) == 0) return hipErrorInvalidConfiguration;
  if (volume(block) > 1024 || block.x > 1024 || block.y > 1024 || block.z > 1024) return hipErrorInvalidConfiguration;
  if (volume(block) > kernel.max_threads) {
    say("kernel " + demangled(function.symbol) + " was compiled for at most " + std::to_string(kernel.max_threads) +
        " threads a block (__launch_bounds__) and was launched with " + std::to_string(volume(block)));
    return hipErrorLaunchFailure;
  }
  if (grid.y > 65535 || grid.z > 65535) return hipErrorInvalidConfiguration;
  if (kernel.lds_bytes + dynamic_lds > kLdsCapacity) return hipErrorInvalidValue;
  return hipSuccess;
}

std::vector<uint8_t> pack_arguments(Function& function, void** arguments) {
  const Kernel& kernel = compiled(function);
  std::vector<uint8_t> packed(kernel.kernarg_bytes + kSlack);
  for (uint32_t i = 0, next = 0; i < kernel.argument_count; i++) {
    const Argument& argument = kernel.arguments[i];
    if (argument.kind == kByValue) std::memcpy(packed.data() + argument.offset, arguments[next++], argument.size);
  }
  return packed;
}

hipError_t launch(Function* function, dim3 grid, dim3 block, std::vector<uint8_t> kernarg, size_t lds, Stream* stream,
                  bool cooperative) {
  if (!stream) return hipErrorInvalidHandle;
  if (hipError_t status = check_launch(*function, grid, block, lds); status != hipSuccess) return status;
  return submit(stream, [=, kernarg = std::move(kernarg)] {
    Launch launch{function, grid, block, (uint32_t)lds, kernarg, cooperative};
    fill_hidden(compiled(*function), launch);
    return run(launch);
  });
}

}  // namespace greenlane

using namespace greenlane;

static hipError_t launch_stub(const void* host, dim3 grid, dim3 block, void** arguments, size_t lds, hipStream_t stream,
                              bool cooperative) {
  Lock lock(runtime_mutex());
  try {
    Function* function = function_of(host);
    if (!function) return missing(host);
    return note(
        launch(function, grid, block, pack_arguments(*function, arguments), lds, stream_of(stream), cooperative));
  } catch (const std::exception& error) {
    say(error.what());
    return note(hipErrorLaunchFailure);
  }
}

static hipError_t launch_module(hipFunction_t handle, dim3 grid, dim3 block, unsigned lds, hipStream_t stream,
                                void** parameters, void** extra, bool cooperative) {
  if (!handle) return note(hipErrorInvalidHandle);
  Lock lock(runtime_mutex());
  try {
    Function* function = (Function*)handle;
    if (parameters || !extra)
      return note(
          launch(function, grid, block, pack_arguments(*function, parameters), lds, stream_of(stream), cooperative));
    const void* buffer = nullptr;
    size_t size = 0;
    for (void** at = extra; *at != HIP_LAUNCH_PARAM_END; at += 2) {
      if (*at == HIP_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = at[1];
      else if (*at == HIP_LAUNCH_PARAM_BUFFER_SIZE)
        size = *(size_t*)at[1];
      else
        return note(hipErrorInvalidValue);
    }
    std::vector<uint8_t> kernarg(std::max<size_t>(size, compiled(*function).kernarg_bytes) + kSlack);
    std::memcpy(kernarg.data(), buffer, size);
    return note(launch(function, grid, block, std::move(kernarg), lds, stream_of(stream), cooperative));
  } catch (const std::exception& error) {
    say(error.what());
    return note(hipErrorLaunchFailure);
  }
}

extern "C" {

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds, hipStream_t stream) {
  configurations.push_back({grid, block, lds, stream});
  return hipSuccess;
}
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds, hipStream_t* stream) {
  if (configurations.empty()) return note(hipErrorInvalidConfiguration);
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *lds = top.lds;
  *stream = top.stream;
  return hipSuccess;
}
hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t lds, hipStream_t stream) {
  return __hipPushCallConfiguration(grid, block, lds, stream);
}

hipError_t hipLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t lds, hipStream_t stream) {
  return launch_stub(host, grid, block, arguments, lds, stream, false);
}
hipError_t hipExtLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t lds, hipStream_t stream,
                              hipEvent_t start, hipEvent_t stop, int) {
  if (start) (void)hipEventRecord(start, stream);
  const hipError_t status = launch_stub(host, grid, block, arguments, lds, stream, false);
  if (stop) (void)hipEventRecord(stop, stream);
  return status;
}
hipError_t hipLaunchCooperativeKernel(const void* host, dim3 grid, dim3 block, void** arguments, unsigned lds,
                                      hipStream_t stream) {
  return launch_stub(host, grid, block, arguments, lds, stream, true);
}
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned lds, hipStream_t stream, void** parameters,
                                 void** extra) {
  return launch_module(function, dim3(gx, gy, gz), dim3(bx, by, bz), lds, stream, parameters, extra, false);
}
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                            unsigned by, unsigned bz, unsigned lds, hipStream_t stream,
                                            void** parameters) {
  return launch_module(function, dim3(gx, gy, gz), dim3(bx, by, bz), lds, stream, parameters, nullptr, true);
}

hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* host) {
  Lock lock(runtime_mutex());
  Function* function = function_of(host);
  if (!function || !attributes) return missing(host);
  const Kernel& kernel = compiled(*function);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->sharedSizeBytes = kernel.lds_bytes;
  attributes->localSizeBytes = kernel.scratch_bytes;
  attributes->maxThreadsPerBlock = kernel.max_threads;
  attributes->numRegs = kernel.vgprs;
  attributes->maxDynamicSharedSizeBytes = kLdsCapacity - kernel.lds_bytes;
  attributes->binaryVersion = attributes->ptxVersion = architecture().major * 10 + architecture().minor;
  return hipSuccess;
}
hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute which, hipFunction_t handle) {
  Lock lock(runtime_mutex());
  const Kernel& kernel = compiled(*(Function*)handle);
  *value = which == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? kernel.max_threads
           : which == HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES   ? kernel.lds_bytes
           : which == HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES    ? kernel.scratch_bytes
           : which == HIP_FUNC_ATTRIBUTE_NUM_REGS            ? kernel.vgprs
                                                             : 0;
  return hipSuccess;
}
hipError_t hipFuncSetAttribute(const void*, hipFuncAttribute attribute, int value) {
  const bool too_large = attribute == hipFuncAttributeMaxDynamicSharedMemorySize && value > (int)kLdsCapacity;
  return note(too_large ? hipErrorInvalidValue : hipSuccess);
}
hipError_t hipFuncSetCacheConfig(const void*, hipFuncCache_t) {
  return hipSuccess;
}
hipError_t hipFuncSetSharedMemConfig(const void*, hipSharedMemConfig) {
  return hipSuccess;
}

// As many blocks as 32 waves and the LDS of a multiprocessor allow.
static int blocks_per_multiprocessor(int block, size_t lds) {
  const int waves = (block + architecture().lanes - 1) / architecture().lanes;
  const int by_waves = std::max(1, 32 / std::max(1, waves));
  return lds ? std::min<int>(by_waves, std::max<size_t>(1, kLdsCapacity / lds)) : by_waves;
}
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int block, size_t lds) {
  Lock lock(runtime_mutex());
  Function* function = function_of(host);
  if (!function || !blocks) return missing(host);
  *blocks = blocks_per_multiprocessor(block, compiled(*function).lds_bytes + lds);
  return hipSuccess;
}
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host, int block, size_t lds,
                                                                 unsigned) {
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, block, lds);
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t function, int block,
                                                              size_t lds) {
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void*)function, block, lds);
}
hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* host, size_t, int limit) {
  Lock lock(runtime_mutex());
  Function* function = function_of(host);
  if (!function) return missing(host);
  const int most = std::min<int>(256, compiled(*function).max_threads);
  *block = limit > 0 ? std::min(limit, most) : most;
  *grid = architecture().multiprocessors * 2;
  return hipSuccess;
}
hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, hipFunction_t function, size_t lds,
                                                   int limit) {
  return hipOccupancyMaxPotentialBlockSize(grid, block, (const void*)function, lds, limit);
}

}  // extern "C"

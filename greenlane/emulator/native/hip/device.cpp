// Devices: one, with the properties of the architecture that is emulated.

#include <unistd.h>

#include <cstring>

#include "runtime.h"

using namespace greenlane;

namespace {

constexpr size_t kDeviceMemory = size_t{16} << 30;

template <class Properties>
void fill(Properties& p) {
  const Architecture& arch = architecture();
  std::memset(&p, 0, sizeof p);
  std::strncpy(p.name, arch.market_name.data(), sizeof p.name - 1);
  std::strncpy(p.gcnArchName, arch.name.data(), sizeof p.gcnArchName - 1);
  p.totalGlobalMem = kDeviceMemory;
  p.totalConstMem = kDeviceMemory;
  p.sharedMemPerBlock = p.maxSharedMemoryPerMultiProcessor = kLdsCapacity;
  p.regsPerBlock = p.regsPerMultiprocessor = arch.registers_per_block;
  p.warpSize = arch.lanes;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsPerMultiProcessor = 2048;
  for (int axis = 0; axis < 3; axis++) p.maxThreadsDim[axis] = 1024;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = p.clockInstructionRate = 1000000;
  p.memoryClockRate = 1000000;
  p.memoryBusWidth = 256;
  p.l2CacheSize = 6 << 20;
  p.major = arch.major;
  p.minor = arch.minor;
  p.multiProcessorCount = arch.multiprocessors;
  p.canMapHostMemory = p.managedMemory = p.concurrentManagedAccess = p.unifiedAddressing = 1;
  p.concurrentKernels = p.cooperativeLaunch = 1;
  p.textureAlignment = p.texturePitchAlignment = 256;
  p.memPitch = 0x7fffffff;
  p.arch.hasGlobalInt32Atomics = p.arch.hasSharedInt32Atomics = p.arch.hasGlobalInt64Atomics = 1;
  p.arch.hasFloatAtomicAdd = p.arch.hasSharedFloatAtomicExch = p.arch.hasGlobalFloatAtomicExch = 1;
  p.arch.hasDoubles = p.arch.hasWarpVote = p.arch.hasWarpBallot = p.arch.hasWarpShuffle = 1;
  p.arch.hasSyncThreadsExt = p.arch.hasThreadFenceSystem = p.arch.has3dGrid = 1;
}

int attribute(hipDeviceAttribute_t which, const hipDeviceProp_t& p) {
  switch (which) {
    case hipDeviceAttributeWarpSize:
      return p.warpSize;
    case hipDeviceAttributeMultiprocessorCount:
      return p.multiProcessorCount;
    case hipDeviceAttributeMaxThreadsPerBlock:
      return p.maxThreadsPerBlock;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor:
      return p.maxThreadsPerMultiProcessor;
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ:
      return 1024;
    case hipDeviceAttributeMaxGridDimX:
      return p.maxGridSize[0];
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ:
      return 65535;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      return kLdsCapacity;
    case hipDeviceAttributeMaxRegistersPerBlock:
      return p.regsPerBlock;
    case hipDeviceAttributeClockRate:
      return p.clockRate;
    case hipDeviceAttributeMemoryClockRate:
      return p.memoryClockRate;
    case hipDeviceAttributeMemoryBusWidth:
      return p.memoryBusWidth;
    case hipDeviceAttributeL2CacheSize:
      return p.l2CacheSize;
    case hipDeviceAttributeComputeCapabilityMajor:
      return p.major;
    case hipDeviceAttributeComputeCapabilityMinor:
      return p.minor;
    case hipDeviceAttributeCanMapHostMemory:
    case hipDeviceAttributeManagedMemory:
    case hipDeviceAttributeConcurrentManagedAccess:
    case hipDeviceAttributeUnifiedAddressing:
    case hipDeviceAttributeConcurrentKernels:
    case hipDeviceAttributeCooperativeLaunch:
    case hipDeviceAttributeMemoryPoolsSupported:
    case hipDeviceAttributeHostRegisterSupported:
      return 1;
    case hipDeviceAttributeWallClockRate:
      return 100000;  // kHz
    case hipDeviceAttributePhysicalMultiProcessorCount:
      return p.multiProcessorCount;
    default:
      return 0;
  }
}

size_t memory_in_use = 0;

}  // namespace

namespace greenlane {
void count_memory(int64_t bytes) {
  memory_in_use += bytes;
}
size_t free_memory() {
  return memory_in_use > kDeviceMemory ? 0 : kDeviceMemory - memory_in_use;
}
}  // namespace greenlane

extern "C" {

hipError_t hipInit(unsigned) {
  return settings(), hipSuccess;
}
hipError_t hipDriverGetVersion(int* version) {
  return version ? (*version = HIP_VERSION, hipSuccess) : note(hipErrorInvalidValue);
}
hipError_t hipRuntimeGetVersion(int* version) {
  return hipDriverGetVersion(version);
}
hipError_t hipGetDeviceCount(int* count) {
  return count ? (*count = 1, hipSuccess) : note(hipErrorInvalidValue);
}
hipError_t hipGetDevice(int* device) {
  return device ? (*device = 0, hipSuccess) : note(hipErrorInvalidValue);
}
hipError_t hipSetDevice(int device) {
  return note(device == 0 ? hipSuccess : hipErrorInvalidDevice);
}
hipError_t hipSetValidDevices(int*, int) {
  return hipSuccess;
}
hipError_t hipGetDeviceFlags(unsigned* flags) {
  return *flags = 0, hipSuccess;
}
hipError_t hipSetDeviceFlags(unsigned) {
  return hipSuccess;
}
hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  return ordinal == 0 ? (*device = 0, hipSuccess) : note(hipErrorInvalidDevice);
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device) {
  if (!properties) return note(hipErrorInvalidValue);
  if (device != 0) return note(hipErrorInvalidDevice);
  fill(*properties);
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t which, int device) {
  if (!value) return note(hipErrorInvalidValue);
  if (device != 0) return note(hipErrorInvalidDevice);
  hipDeviceProp_t properties;
  fill(properties);
  *value = attribute(which, properties);
  return hipSuccess;
}

hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  if (!name || length <= 0 || device != 0) return note(hipErrorInvalidValue);
  std::strncpy(name, architecture().market_name.data(), length - 1);
  name[length - 1] = 0;
  return hipSuccess;
}
hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t) {
  *major = architecture().major;
  *minor = architecture().minor;
  return hipSuccess;
}
hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t) {
  return *bytes = kDeviceMemory, hipSuccess;
}
hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  if (free) *free = free_memory();
  if (total) *total = kDeviceMemory;
  return hipSuccess;
}
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t) {
  return std::memcpy(uuid->bytes, "greenlane-emul01", 16), hipSuccess;
}
hipError_t hipDeviceGetPCIBusId(char* id, int length, int) {
  return std::strncpy(id, "0000:00:00.0", length), hipSuccess;
}
hipError_t hipDeviceGetByPCIBusId(int* device, const char*) {
  return *device = 0, hipSuccess;
}
hipError_t hipDeviceGetLimit(size_t* value, hipLimit_t) {
  return *value = 8 << 20, hipSuccess;
}
hipError_t hipDeviceSetLimit(hipLimit_t, size_t) {
  return hipSuccess;
}
hipError_t hipDeviceGetCacheConfig(hipFuncCache_t* config) {
  return *config = hipFuncCachePreferNone, hipSuccess;
}
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t) {
  return hipSuccess;
}
hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig* config) {
  return *config = hipSharedMemBankSizeFourByte, hipSuccess;
}
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig) {
  return hipSuccess;
}
hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 1;
  if (greatest) *greatest = -1;
  return hipSuccess;
}
hipError_t hipDeviceCanAccessPeer(int* can, int, int) {
  return *can = 0, hipSuccess;
}
hipError_t hipDeviceEnablePeerAccess(int, unsigned) {
  return note(hipErrorPeerAccessUnsupported);
}
hipError_t hipDeviceDisablePeerAccess(int) {
  return note(hipErrorPeerAccessUnsupported);
}
hipError_t hipChooseDeviceR0600(int* device, const hipDeviceProp_tR0600*) {
  return *device = 0, hipSuccess;
}

hipError_t hipDeviceSynchronize() {
  Lock lock(runtime_mutex());
  if (any_capture()) return note(hipErrorStreamCaptureUnsupported);
  return note(drain_all());
}
hipError_t hipDeviceReset() {
  Lock lock(runtime_mutex());
  return note(drain_all());
}

}  // extern "C"

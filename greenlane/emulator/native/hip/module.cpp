// What the compiler's start-up code calls (fat binaries, kernels, variables), and the module interface.

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "runtime.h"

namespace greenlane {

hipError_t copy_now(void* to, const void* from, size_t size, hipMemcpyKind kind);
hipError_t copy_later(void* to, const void* from, size_t size, hipMemcpyKind kind, hipStream_t stream);

namespace {

struct FatBinary {
  const void* blob = nullptr;
  std::shared_ptr<Image> image;  // loaded when something in it is used first
  std::string problem;
};

struct Variable {
  FatBinary* binary;
  std::string name;
  size_t size;
  void** managed = nullptr;  // the host's pointer to a managed variable
};

struct Registry {
  std::map<const void*, std::pair<FatBinary*, std::string>> kernels;  // by the address of the host stub
  std::map<const void*, Function*> resolved;
  std::map<const void*, Variable> variables;
};
Registry& registry() {
  static Registry& registry = *new Registry;
  return registry;
}

std::shared_ptr<Image> image_of(FatBinary* binary) {
  if (!binary->image && binary->problem.empty()) try {
      binary->image = load_image(binary->blob, 0);
    } catch (const std::exception& error) {
      binary->problem = error.what();
      say(std::string("can't load the program's GPU code: ") + error.what());
    }
  return binary->image;
}

// Where a __device__ variable lies.
void* address_of(const void* host, size_t* size) {
  auto found = registry().variables.find(host);
  if (found == registry().variables.end()) return nullptr;
  const auto image = image_of(found->second.binary);
  if (!image || !image->symbols.contains(found->second.name)) return nullptr;
  const Image::Symbol& symbol = image->symbols[found->second.name];
  if (size) *size = symbol.size ? symbol.size : found->second.size;
  return image->base + symbol.address;
}

struct Module {
  std::shared_ptr<Image> image;
};

hipError_t load_module(hipModule_t* module, const void* data, size_t size) {
  if (!module || !data) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  try {
    *module = (hipModule_t) new Module{load_image(data, size)};
    return hipSuccess;
  } catch (const std::exception& error) {
    say(std::string("can't load a module: ") + error.what());
    return note(hipErrorInvalidImage);
  }
}

hipError_t copy_symbol(const void* symbol, size_t size, size_t offset, void** place) {
  size_t held = 0;
  void* base = address_of(symbol, &held);
  if (!base) return hipErrorInvalidSymbol;
  if (offset + size > held) return hipErrorInvalidValue;
  *place = (char*)base + offset;
  return hipSuccess;
}

}  // namespace

// The kernel behind a host stub, or behind a hipFunction_t that is passed as one.
Function* function_of(const void* host) {
  Registry& r = registry();
  if (auto known = r.resolved.find(host); known != r.resolved.end()) return known->second;
  auto found = r.kernels.find(host);
  if (found == r.kernels.end()) {
    for (Function* function : all_functions())
      if (function == host) return function;
    return nullptr;
  }
  const auto image = image_of(found->second.first);
  return r.resolved[host] = image ? function_for(image, found->second.second) : nullptr;
}

bool lacks_code(const void* host) {
  auto found = registry().kernels.find(host);
  return found != registry().kernels.end() && !found->second.first->problem.empty();
}

}  // namespace greenlane

using namespace greenlane;

extern "C" {

struct FatBinaryWrapper {
  uint32_t magic, version;
  const void* binary;
  const void* unused;
};

void** __hipRegisterFatBinary(const void* data) {
  Lock lock(runtime_mutex());
  auto* binary = new FatBinary;
  binary->blob = ((const FatBinaryWrapper*)data)->binary;
  return (void**)binary;
}
void __hipUnregisterFatBinary(void**) {}

void __hipRegisterFunction(void** binary, const void* host, char*, const char* device, unsigned, void*, void*, void*,
                           void*, int*) {
  Lock lock(runtime_mutex());
  registry().kernels[host] = {(FatBinary*)binary, device};
}
void __hipRegisterVar(void** binary, void* host, char*, const char* device, int, size_t size, int, int) {
  Lock lock(runtime_mutex());
  registry().variables[host] = {(FatBinary*)binary, device, size};
}
// The device's copy of a managed variable is a pointer; both sides get the same memory.
void __hipRegisterManagedVar(void* binary, void** pointer, void* initial, const char* device, size_t size, unsigned) {
  Lock lock(runtime_mutex());
  if (hipMallocManaged(pointer, size, hipMemAttachGlobal) != hipSuccess) return;
  std::memcpy(*pointer, initial, size);
  registry().variables[pointer] = {(FatBinary*)binary, device, size, pointer};
  if (void* place = address_of(pointer, nullptr)) std::memcpy(place, pointer, sizeof(void*));
}
void __hipRegisterTexture(void**, void*, char*, char*, int, int, int) {}
void __hipRegisterSurface(void**, void*, char*, char*, int, int) {}

hipError_t hipGetSymbolAddress(void** pointer, const void* symbol) {
  Lock lock(runtime_mutex());
  *pointer = address_of(symbol, nullptr);
  return note(*pointer ? hipSuccess : hipErrorInvalidSymbol);
}
hipError_t hipGetSymbolSize(size_t* size, const void* symbol) {
  Lock lock(runtime_mutex());
  return note(address_of(symbol, size) ? hipSuccess : hipErrorInvalidSymbol);
}
hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t size, size_t offset, hipMemcpyKind) {
  void* place = nullptr;
  const hipError_t status = copy_symbol(symbol, size, offset, &place);
  return status != hipSuccess ? note(status) : copy_now(place, from, size, hipMemcpyDefault);
}
hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t size, size_t offset, hipMemcpyKind,
                                  hipStream_t stream) {
  void* place = nullptr;
  const hipError_t status = copy_symbol(symbol, size, offset, &place);
  return status != hipSuccess ? note(status) : copy_later(place, from, size, hipMemcpyDefault, stream);
}
hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t size, size_t offset, hipMemcpyKind) {
  void* place = nullptr;
  const hipError_t status = copy_symbol(symbol, size, offset, &place);
  return status != hipSuccess ? note(status) : copy_now(to, place, size, hipMemcpyDefault);
}
hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t size, size_t offset, hipMemcpyKind,
                                    hipStream_t stream) {
  void* place = nullptr;
  const hipError_t status = copy_symbol(symbol, size, offset, &place);
  return status != hipSuccess ? note(status) : copy_later(to, place, size, hipMemcpyDefault, stream);
}

hipError_t hipModuleLoadData(hipModule_t* module, const void* data) {
  return load_module(module, data, 0);
}
hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* data, unsigned, hipJitOption*, void**) {
  return load_module(module, data, 0);
}
hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return note(hipErrorFileNotFound);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  return load_module(module, bytes.data(), bytes.size());
}
hipError_t hipModuleUnload(hipModule_t module) {
  Lock lock(runtime_mutex());
  if (!module) return note(hipErrorInvalidHandle);
  if (hipError_t status = drain_all(); status != hipSuccess) return note(status);
  delete (Module*)module;
  return hipSuccess;
}
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  if (!function || !module || !name) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  *function = (hipFunction_t)function_for(((Module*)module)->image, name);
  return note(*function ? hipSuccess : hipErrorNotFound);
}
hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* size, hipModule_t module, const char* name) {
  if (!module || !name) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  Image& image = *((Module*)module)->image;
  auto found = image.symbols.find(name);
  if (found == image.symbols.end()) return note(hipErrorNotFound);
  if (pointer) *pointer = image.base + found->second.address;
  if (size) *size = found->second.size;
  return hipSuccess;
}
hipError_t hipGetFuncBySymbol(hipFunction_t* function, const void* symbol) {
  Lock lock(runtime_mutex());
  *function = (hipFunction_t)function_of(symbol);
  return note(*function ? hipSuccess : hipErrorInvalidDeviceFunction);
}
const char* hipKernelNameRef(const hipFunction_t function) {
  return function ? ((Function*)function)->symbol.c_str() : nullptr;
}
const char* hipKernelNameRefByPtr(const void* host, hipStream_t) {
  Lock lock(runtime_mutex());
  Function* function = function_of(host);
  return function ? function->symbol.c_str() : nullptr;
}

}  // extern "C"

// See device.h.
#include "device.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "memory.h"
#include "vt/error.h"
#include "weights.h"

namespace cpu {
namespace {

struct CpuEvent : vt::Event {};

constexpr int kMaxThreads = 1024;

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::string architecture() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni")) return "x86-64-avx512vnni";
  if (__builtin_cpu_supports("avx512f")) return "x86-64-avx512";
  if (__builtin_cpu_supports("avx2")) return "x86-64-avx2";
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "portable";
#endif
}

vt::DeviceInfo device_info(int) {
  return {.name = processor_name(),
          .arch = architecture(),
          .driver = "",
          .total_memory = total_memory(),
          .free_memory = free_memory(),
          .capabilities = {.batch_invariant = true, .unified_memory = true}};
}

vt::Device* open(int index, const vt::DeviceOptions& options) {
  if (index != 0) throw vt::Error("there is one device 'cpu', not a 'cpu:" + std::to_string(index) + "'");
  if (options.threads < 0 || options.threads > kMaxThreads) {
    throw vt::BadArgument("threads must lie in 0.." + std::to_string(kMaxThreads) + ", not " +
                          std::to_string(options.threads));
  }
  return new CpuDevice(options.threads ? options.threads : usable_cores());
}

}  // namespace

vt::Platform platform() {
  return {
      .device_count = [] { return 1; },
      .device_info = device_info,
      .open = open,
      .close = [](vt::Device* device) { delete static_cast<CpuDevice*>(device); },
      .threads = [](vt::Device* device) { return static_cast<CpuDevice*>(device)->pool.size(); },
      .activation_dtype = [](vt::Device*, vt::Precision, vt::DType) { return vt::DType::F32; },
      .kv_dtype = [](vt::Device*, vt::Precision precision,
                     vt::DType) { return precision == vt::Precision::fast ? vt::DType::F16 : vt::DType::F32; },
      .alloc = [](vt::Device*, std::size_t bytes) { return allocate(bytes).data; },
      .free = [](vt::Device*, void* memory) { release(memory); },
      .prepare_weight = prepare_weight,
      .free_weight = free_weight,
      .create_queue = [](vt::Device* device) -> vt::Queue* { return new CpuQueue(*static_cast<CpuDevice*>(device)); },
      .destroy_queue = [](vt::Queue* queue) { delete static_cast<CpuQueue*>(queue); },
      .copy = [](vt::Queue*, void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
      .zero = [](vt::Queue*, void* memory, std::size_t bytes) { std::memset(memory, 0, bytes); },
      .synchronise = [](vt::Queue*) {},
      .create_event = [](vt::Device*) -> vt::Event* { return new CpuEvent; },
      .destroy_event = [](vt::Event* event) { delete static_cast<CpuEvent*>(event); },
      .record = [](vt::Queue*, vt::Event*) {},
      .wait = [](vt::Queue*, vt::Event*) {},
      .done = [](vt::Event*) { return true; },
      .synchronise_event = [](vt::Event*) {},
  };
}

}  // namespace cpu

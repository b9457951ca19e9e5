// Chooses kernels by what the processor has.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "fast/amx.h"
#include "fast/kernels.h"
#include "vt/error.h"

namespace cpu::fast {

extern const Kernels kPortable;
#if defined(__x86_64__)
extern const Kernels kAvx512;
extern const Kernels kAvx2;
#elif defined(__aarch64__)
extern const Kernels kNeon;
#endif

namespace {

// Best first.
std::vector<const Kernels*> usable() {
  std::vector<const Kernels*> list;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    list.push_back(&kAvx512);
  }
  // Every processor with AVX2 has F16C, for which compilers have no name here.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list.push_back(&kAvx2);
#elif defined(__aarch64__)
  if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) list.push_back(&kNeon);
#endif
  list.push_back(&kPortable);
  return list;
}

const Kernels& chosen() {
  const char* wanted = std::getenv("ENGINE_CPU_KERNELS");
  std::string known;
  for (const Kernels* one : usable()) {
    if (!wanted || wanted == std::string_view(one->name)) return *one;
    known += (known.empty() ? "" : ", ") + std::string(one->name);
  }
  throw vt::Error("ENGINE_CPU_KERNELS is '" + std::string(wanted) + "', but this processor runs " + known);
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& best = chosen();
  return best;
}

#if defined(__x86_64__)
namespace {

// Whether the processor has all of these features of its tiles, and the kernel lets this process use them.
bool tiles_with(unsigned features) {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (&kernels() != &kAvx512 || std::getenv("ENGINE_CPU_NO_AMX")) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & features) != features) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;

}  // namespace

bool amx_available() {
  static const bool available = tiles_with(kTile | kInt8);
  return available;
}

bool amx_bf16_available() {
  static const bool available = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kVectorBf16 = 1u << 5;
    return tiles_with(kTile | kBf16) && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kVectorBf16);
  }();
  return available;
}
#else
bool amx_available() {
  return false;
}
bool amx_bf16_available() {
  return false;
}
bool amx_attends(std::int64_t, bool) {
  return false;
}
void amx_attend(const AttentionTile&) {}
const std::array<Multiply, static_cast<std::size_t>(Layout::count)> kAmxMultiply{};
#endif

}  // namespace cpu::fast

// What a kernel can ask of its host and this one lacks: it gets addresses that only fault, so that the fault says what
// was asked for.

#include <sys/mman.h>

#include "runtime.h"

namespace greenlane {
namespace {

constexpr uint64_t kBytes = 64 << 10;  // of each service
constexpr const char* kNames[] = {"printf, or an assertion's message (a call to the host),",
                                  "synchronisation of the whole grid", "memory that a kernel allocates"};

uint64_t pages() {
  static const void* found = mmap(nullptr, 3 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return (uint64_t)found;
}

}  // namespace

uint64_t missing_service(uint32_t kind) {
  return pages() + (kind == kHostCalls ? 0 : kind == kGridSync ? 1 : 2) * kBytes;
}

void refuse_missing_service(const Function& function, uint64_t address) {
  const uint64_t which = (address - pages()) / kBytes;
  if (address < pages() || which > 2) return;
  die("kernel " + demangled(function.symbol) + ": " + kNames[which] + " is not emulated", 3);
}

}  // namespace greenlane

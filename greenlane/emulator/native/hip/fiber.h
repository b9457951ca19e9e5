// One wave that can be left at a barrier and taken up again: a stack of its own and a switch between stacks.

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "../kernel/wave.h"

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace greenlane {

enum class Progress { kReady, kAtBarrier, kDone };

struct Worker;

struct Fiber : Wave {
  Worker* worker = nullptr;
  const Kernel* kernel = nullptr;
  Progress progress = Progress::kReady;
  bool on_own_stack = false;
#ifdef __x86_64__
  void* place = nullptr;  // its stack pointer while it is left
#else
  ucontext_t place;
#endif
};

// Stacks with a guard page below each; the kernel of the host gives memory only for what is touched.
class Stacks {
 public:
  static constexpr size_t kBytes = 512 << 10, kGuard = 4096;

  uint8_t* top(size_t index) {
    if (!base_) reserve();
    return base_ + (index + 1) * kBytes;
  }

 private:
  static constexpr size_t kCount = 32;
  void reserve() {
    void* all =
        mmap(nullptr, kCount * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) throw std::runtime_error("no memory for the stacks of waves");
    base_ = (uint8_t*)all;
    for (size_t i = 0; i < kCount; i++) mprotect(base_ + i * kBytes, kGuard, PROT_NONE);
  }
  uint8_t* base_ = nullptr;
};

#ifdef __x86_64__

extern "C" void greenlane_switch(void** save, void* to);

using Resume = void*;

inline void prepare(Fiber& fiber, uint8_t* top, void (*entry)()) {
  void** stack = (void**)(top - 64);
  *--stack = nullptr;  // where `entry` would return to
  *--stack = (void*)entry;
  for (int saved = 0; saved < 6; saved++) *--stack = nullptr;
  fiber.place = stack;
}
inline void enter(Resume& home, Fiber& fiber) {
  greenlane_switch(&home, fiber.place);
}
inline void leave(Fiber& fiber, Resume& home) {
  greenlane_switch(&fiber.place, home);
}

#else

using Resume = ucontext_t;

inline void prepare(Fiber& fiber, uint8_t* top, void (*entry)()) {
  getcontext(&fiber.place);
  fiber.place.uc_stack.ss_sp = top - Stacks::kBytes + Stacks::kGuard;
  fiber.place.uc_stack.ss_size = Stacks::kBytes - Stacks::kGuard;
  fiber.place.uc_link = nullptr;
  makecontext(&fiber.place, entry, 0);
}
inline void enter(Resume& home, Fiber& fiber) {
  swapcontext(&home, &fiber.place);
}
inline void leave(Fiber& fiber, Resume& home) {
  swapcontext(&fiber.place, &home);
}

#endif

}  // namespace greenlane

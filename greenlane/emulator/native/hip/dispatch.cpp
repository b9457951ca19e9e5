// Runs the workgroups of a launch on a pool of threads that stays.

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <numeric>
#include <thread>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "fiber.h"
#include "runtime.h"

#ifdef __x86_64__
asm(R"(
.text
.globl greenlane_switch
.hidden greenlane_switch
.type greenlane_switch, @function
greenlane_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#endif

namespace greenlane {

thread_local Place current_place;
thread_local Fiber* current_fiber = nullptr;

// What a thread needs to run one workgroup after another.
struct Worker {
  std::vector<Fiber> waves;
  std::vector<uint32_t> order;
  std::vector<uint8_t> scratch;
  uint8_t* lds = (uint8_t*)std::aligned_alloc(64, kLdsCapacity + 4096);
  std::unique_ptr<ShadowByte[]> shadow;
  Stacks stacks;
  Resume home{};
  jmp_buf stopped;
  uint64_t random = settings().seed * 0x9e3779b97f4a7c15 + 1;
};

namespace {

struct Running {
  const Launch& launch;
  const Kernel& kernel;
  uint64_t groups;
  uint64_t chunk;
  std::atomic<uint64_t> next{0}, instructions{0};
  std::atomic<bool> stopped{false};
};

void at_barrier(Wave* wave) {
  Fiber& fiber = *static_cast<Fiber*>(wave);
  if (!fiber.on_own_stack) {
    fiber.epoch++;
    return;
  }
  fiber.progress = Progress::kAtBarrier;
  leave(fiber, fiber.worker->home);
}

void pause(Wave* wave) {
  Fiber& fiber = *static_cast<Fiber*>(wave);
  if (fiber.on_own_stack) leave(fiber, fiber.worker->home);
  std::this_thread::yield();
}

Range allocation_around(uint64_t address) {
  const Allocation* found = find_allocation((const void*)address);
  if (found) return {found->begin, found->begin + found->size};
  const auto& kernarg = current_place.launch->kernarg;
  const uint64_t begin = (uint64_t)kernarg.data();
  if (address - begin < kernarg.size()) return {begin, begin + kernarg.size()};
  const uint64_t packet = (uint64_t)current_place.wave->dispatch_packet;
  return address - packet < 64 ? Range{packet, packet + 64} : Range{0, 0};
}

void stop(Wave* wave, Finding finding, uint32_t pc) {
  report(wave, finding, Access::kLoad, pc, -1, 0, 0, ~0u);
  Fiber& fiber = *static_cast<Fiber*>(wave);
  if (!fiber.on_own_stack) longjmp(fiber.worker->stopped, 1);
  fiber.progress = Progress::kDone;
  fiber.worker->random |= 1;
  fiber.step_limit = 0;
  leave(fiber, fiber.worker->home);
}

uint64_t clock_ticks() {  // 100 MHz, as on the hardware
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
             .count() /
         10;
}

constexpr Host kHost{at_barrier, pause, allocation_around, report, stop, clock_ticks};

void fiber_main() {
  Fiber& fiber = *current_fiber;
  fiber.kernel->run(&fiber);
  fiber.progress = Progress::kDone;
  leave(fiber, fiber.worker->home);
}

uint64_t next_random(Worker& worker) {
  worker.random ^= worker.random << 13;
  worker.random ^= worker.random >> 7;
  return worker.random ^= worker.random << 17;
}

void arrange(Worker& worker, uint32_t count) {
  worker.order.resize(count);
  std::iota(worker.order.begin(), worker.order.end(), 0);
  if (settings().order == Settings::Order::kReverse) std::reverse(worker.order.begin(), worker.order.end());
  if (settings().order == Settings::Order::kRandom)
    for (uint32_t i = count; i > 1; i--) std::swap(worker.order[i - 1], worker.order[next_random(worker) % i]);
}

void set_up(Worker& worker, Running& running, uint64_t group, const uint8_t* packet) {
  const Launch& launch = running.launch;
  const Kernel& kernel = running.kernel;
  const uint32_t threads = launch.block.x * launch.block.y * launch.block.z,
                 count = (threads + kernel.lanes - 1) / kernel.lanes;
  const size_t scratch_per_wave = size_t{kernel.scratch_bytes} * kernel.lanes;
  worker.waves.resize(std::max<size_t>(worker.waves.size(), count));
  if (worker.scratch.size() < scratch_per_wave * count + kSlack)
    worker.scratch.resize(scratch_per_wave * count + kSlack);
  const uint32_t lds_bytes = kernel.lds_bytes + launch.dynamic_lds;
  if (settings().sanitize) {
    if (!worker.shadow) worker.shadow = std::make_unique<ShadowByte[]>(kLdsCapacity);
    std::fill_n(worker.shadow.get(), lds_bytes, ShadowByte{});
  }
  for (uint32_t i = 0; i < count; i++) {
    Fiber& wave = worker.waves[i];
    static_cast<Wave&>(wave) = Wave{
        .kernarg = launch.kernarg.data(),
        .dispatch_packet = packet,
        .lds = worker.lds,
        .scratch = worker.scratch.data() + scratch_per_wave * i,
        .image = (uint64_t)launch.function->image->base,
        .host = &kHost,
        .shadow = worker.shadow.get(),
        .instructions = 0,
        .step_limit = settings().step_limit,
        .recent = {1, 0},
        .scratch_bytes = kernel.scratch_bytes,
        .lds_bytes = lds_bytes,
        .group = {(uint32_t)(group % launch.grid.x), (uint32_t)(group / launch.grid.x % launch.grid.y),
                  (uint32_t)(group / launch.grid.x / launch.grid.y)},
        .group_size = {launch.block.x, launch.block.y, launch.block.z},
        .threads = threads,
        .index = i,
        .epoch = 1,
    };
    wave.worker = &worker;
    wave.kernel = &kernel;
    wave.progress = Progress::kReady;
    wave.on_own_stack = false;
  }
}

// Without barriers one wave runs to its end before the next begins.
bool run_in_turn(Worker& worker, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    Fiber& wave = worker.waves[worker.order[i]];
    current_place.wave = &wave;
    if (setjmp(worker.stopped)) return false;
    wave.kernel->run(&wave);
  }
  return true;
}

// Between two barriers the waves run in the chosen order; a new interval, a new order.
bool run_interleaved(Worker& worker, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    worker.waves[i].on_own_stack = true;
    prepare(worker.waves[i], worker.stacks.top(i), fiber_main);
  }
  for (uint32_t done = 0; done < count;) {
    bool any_ready = false;
    for (uint32_t at : worker.order) {
      Fiber& wave = worker.waves[at];
      if (wave.progress != Progress::kReady) continue;
      any_ready = true;
      current_fiber = &wave;
      current_place.wave = &wave;
      enter(worker.home, wave);
      if (wave.progress != Progress::kDone) continue;
      if (wave.step_limit == 0) return false;  // stopped
      done++;
    }
    if (any_ready) continue;
    for (uint32_t i = 0; i < count; i++)
      if (worker.waves[i].progress == Progress::kAtBarrier) {
        worker.waves[i].progress = Progress::kReady;
        worker.waves[i].epoch++;
      }
    arrange(worker, count);
  }
  return true;
}

bool run_group(Worker& worker, Running& running, uint64_t group, const uint8_t* packet) {
  set_up(worker, running, group, packet);
  const uint32_t count = (worker.waves[0].threads + running.kernel.lanes - 1) / running.kernel.lanes;
  arrange(worker, count);
  const bool finished =
      running.kernel.has_barrier && count > 1 ? run_interleaved(worker, count) : run_in_turn(worker, count);
  uint64_t instructions = 0;
  for (uint32_t i = 0; i < count; i++) instructions += worker.waves[i].instructions;
  running.instructions += instructions;
  return finished;
}

// What a kernel finds behind its dispatch pointer.
struct alignas(64) Packet {
  uint16_t header = 2, setup = 3, group_size[3]{}, reserved = 0;
  uint32_t grid_size[3]{}, private_bytes = 0, group_bytes = 0;
  uint64_t code = 0, kernarg = 0, unused = 0, completion = 0;
};
static_assert(sizeof(Packet) == 64);

Packet packet_of(const Running& running) {
  Packet packet;
  const Launch& l = running.launch;
  const uint32_t block[] = {l.block.x, l.block.y, l.block.z}, grid[] = {l.grid.x, l.grid.y, l.grid.z};
  for (int axis = 0; axis < 3; axis++) {
    packet.group_size[axis] = block[axis];
    packet.grid_size[axis] = grid[axis] * block[axis];
  }
  packet.private_bytes = running.kernel.scratch_bytes;
  packet.group_bytes = running.kernel.lds_bytes + l.dynamic_lds;
  packet.kernarg = (uint64_t)l.kernarg.data();
  return packet;
}

void work(Running& running) {
  static thread_local Worker& worker = *new Worker;
  const Place outer = current_place;
  current_place.launch = &running.launch;
  const Packet packet = packet_of(running);
#ifdef __x86_64__
  const unsigned csr = _mm_getcsr();
  _mm_setcsr(0x1f80 | (running.kernel.flushes_denormals ? 0x8040 : 0));  // to nearest, exceptions masked
#endif
  while (!running.stopped) {
    const uint64_t begin = running.next.fetch_add(running.chunk);
    if (begin >= running.groups) break;
    const uint64_t end = std::min(begin + running.chunk, running.groups);
    for (uint64_t group = begin; group < end && !running.stopped; group++) {
      const uint64_t chosen = settings().order == Settings::Order::kReverse ? running.groups - 1 - group : group;
      if (!run_group(worker, running, chosen, (const uint8_t*)&packet)) running.stopped = true;
    }
  }
#ifdef __x86_64__
  _mm_setcsr(csr);
#endif
  current_place = outer;
}

void crashed(int signal, siginfo_t* info, void*) {
  if (!current_place.launch) {  // not ours
    ::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  const std::string name = demangled(current_place.launch->function->symbol);
  refuse_missing_service(*current_place.launch->function, (uint64_t)info->si_addr);
  die("memory access fault in kernel " + name + " at address " + std::to_string((uint64_t)info->si_addr) +
          (settings().sanitize ? "" : "; run again with --sanitize to see the instruction"),
      134);
}

void catch_crashes() {
  thread_local bool done = false;
  if (std::exchange(done, true)) return;
  constexpr size_t size = 64 << 10;
  stack_t stack{.ss_sp = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                .ss_flags = 0,
                .ss_size = size};
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = crashed;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

class Pool {
 public:
  explicit Pool(unsigned helpers) {
    for (unsigned i = 0; i < helpers; i++) std::thread([this] { serve(); }).detach();
    helpers_ = helpers;
  }
  void run(Running& running) {
    {
      std::lock_guard lock(mutex_);
      running_ = &running;
      generation_++;
      left_ = helpers_;
    }
    wake_.notify_all();
    work(running);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return left_ == 0; });
    running_ = nullptr;
  }

 private:
  void serve() {
    catch_crashes();
    for (uint64_t seen = 0;;) {
      Running* running;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return generation_ != seen; });
        seen = generation_;
        running = running_;
      }
      work(*running);
      std::lock_guard lock(mutex_);
      if (--left_ == 0) idle_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Running* running_ = nullptr;
  uint64_t generation_ = 0;
  unsigned helpers_ = 0, left_ = 0;
};

// Waking the pool costs more than a small launch does.
bool worth_sharing(const Function& function, uint64_t groups) {
  constexpr uint64_t kEnough = 30000;  // instructions of waves
  if (settings().threads < 2 || groups < 2) return false;
  return function.workgroups == 0 ? groups >= 4 : function.instructions / function.workgroups * groups >= kEnough;
}

}  // namespace

hipError_t run(Launch& launch) {
  Function& function = *launch.function;
  const Kernel& kernel = compiled(function);
  catch_crashes();
  const uint64_t groups = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  Running running{launch, kernel, groups, groups / (settings().threads * 8) + 1};
  static Pool* pool = settings().threads > 1 ? new Pool(settings().threads - 1) : nullptr;
  if (pool && worth_sharing(function, groups))
    pool->run(running);
  else
    work(running);
  const uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  function.launches++;
  function.workgroups += groups;
  function.waves += groups * ((threads + kernel.lanes - 1) / kernel.lanes);
  function.instructions += running.instructions;
  return running.stopped ? hipErrorLaunchFailure : hipSuccess;
}

}  // namespace greenlane

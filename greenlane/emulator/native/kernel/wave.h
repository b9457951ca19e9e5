// What a translated kernel and the runtime share: the state of one wave and the table that describes a kernel.

#pragma once

#include <stddef.h>
#include <stdint.h>

namespace greenlane {

// Where flat addresses of LDS and scratch begin; above what user space maps on x86-64 and AArch64.
constexpr uint64_t kSharedAperture = 0x0001'0000'0000'0000;
constexpr uint64_t kPrivateAperture = 0x0002'0000'0000'0000;
constexpr uint32_t kLdsCapacity = 64 << 10;
// Bytes that may be touched past a region by an access whose check is off.
constexpr uint32_t kSlack = 256;

enum class Access : uint32_t { kLoad, kStore, kAtomic };

enum class Finding : uint32_t {
  kGlobalBounds,
  kLdsBounds,
  kScratchBounds,
  kLdsUninitialised,
  kLdsRace,
  kMisaligned,
  kLaneOutOfRange,
  kStepLimit,
  kTrap,
  kNullCode,
};

struct Wave;

// A live allocation as the wave saw it last.
struct Range {
  uint64_t begin;
  uint64_t end;
};

// What a kernel asks of the runtime.
struct Host {
  void (*barrier)(Wave*);
  void (*pause)(Wave*);
  // The live allocation around an address; an empty range when there is none.
  Range (*allocation)(uint64_t address);
  void (*report)(Wave*, Finding, Access, uint32_t pc, int lane, uint64_t address, uint32_t bytes, uint32_t other);
  // Ends the launch; never returns.
  void (*stop)(Wave*, Finding, uint32_t pc);
  uint64_t (*clock)();
};

// One byte of LDS in sanitizer mode: who wrote and read it since the last barrier.
struct ShadowByte {
  uint32_t write_epoch;
  uint32_t read_epoch;
  uint8_t writer;
  uint8_t reader;
  uint8_t written;       // ever, by this workgroup
  uint8_t several_read;  // more than one wave read it in read_epoch
  uint8_t atomic;        // the write was an atomic
  uint8_t read_atomic;
  uint16_t padding;
};

struct Wave {
  const uint8_t* kernarg;
  const uint8_t* dispatch_packet;
  uint8_t* lds;
  uint8_t* scratch;  // lane after lane
  uint64_t image;    // where the code object is loaded
  const Host* host;
  ShadowByte* shadow;     // one per byte of LDS
  uint64_t instructions;  // executed so far
  uint64_t step_limit;
  Range recent;
  uint32_t scratch_bytes;  // of one lane
  uint32_t lds_bytes;
  uint32_t group[3];
  uint32_t group_size[3];
  uint32_t threads;  // of the workgroup
  uint32_t index;    // of the wave in its workgroup
  uint32_t epoch;    // barriers passed, from 1
};

struct Argument {
  uint32_t offset;
  uint32_t size;
  uint32_t kind;
};

// Kinds of kernel arguments; the translator writes these numbers.
enum ArgumentKind : uint32_t {
  kByValue = 0,
  kBlockCountX = 1,
  kBlockCountY,
  kBlockCountZ,
  kGroupSizeX,
  kGroupSizeY,
  kGroupSizeZ,
  kRemainderX,
  kRemainderY,
  kRemainderZ,
  kGridDims,
  kDynamicLds,
  kPrivateBase,
  kSharedBase,
  kHeap,
  kHiddenZero,
  kHostCalls,
  kGridSync,
};

constexpr uint32_t kKernelAbi = 1;

// Exported by each compiled kernel as `greenlane_kernel`.
struct Kernel {
  uint32_t abi;
  uint32_t lanes;
  void (*run)(Wave*);
  uint32_t has_barrier;
  uint32_t lds_bytes;
  uint32_t scratch_bytes;
  uint32_t kernarg_bytes;
  uint32_t max_threads;
  uint32_t vgprs;
  uint32_t sgprs;
  uint32_t flushes_denormals;
  uint32_t argument_count;
  const Argument* arguments;
  const char* opcodes;  // "mnemonic count" lines
};

}  // namespace greenlane

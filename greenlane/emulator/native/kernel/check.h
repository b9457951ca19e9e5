// The sanitizer's checks. With GREENLANE_SANITIZE off they compile to nothing; with it on, a lane whose access is bad
// is reported and left out of the access.

#pragma once

#include "lanes.h"
#include "wave.h"

namespace greenlane {

#ifdef GREENLANE_SANITIZE
constexpr bool kSanitize = true;
#else
constexpr bool kSanitize = false;
#endif

constexpr u32 kNobody = ~0u;

inline void check_lane(Wave& wave, Mask exec, U32 lane, u32 pc) {
  const Mask outside = mask_of((I32)(lane >= (u32)kLanes)) & exec;
  if (!outside) return;
  const int first = first_lane(outside);
  wave.host->report(&wave, Finding::kLaneOutOfRange, Access::kLoad, pc, first, lane[first], 0, kNobody);
}

inline bool inside(const Range& range, u64 address, u32 bytes) {
  return address >= range.begin && address + bytes <= range.end;
}

__attribute__((noinline)) inline Mask check_each_global(Wave& wave, Mask exec, const u64* address, u32 bytes,
                                                        Access access, u32 pc) {
  Mask good = 0;
  for_lanes(exec, [&](int i) {
    if (!inside(wave.recent, address[i], bytes)) {
      const Range found = wave.host->allocation(address[i]);
      if (!inside(found, address[i], bytes)) {
        wave.host->report(&wave, Finding::kGlobalBounds, access, pc, i, address[i], bytes, kNobody);
        return;
      }
      wave.recent = found;
    }
    good |= Mask{1} << i;
  });
  return good;
}

// Plain accesses may be unaligned on this hardware (reported as a note by the runtime); atomics may not.
inline Mask check_global(Wave& wave, Mask exec, U64 address, u32 bytes, Access access, u32 pc) {
  const u32 align = access == Access::kAtomic ? bytes : bytes < 4 ? bytes : 4;
  const Mask unaligned = mask_of((I32)((low(address) & (align - 1)) != 0u)) & exec;
  if (unaligned) {
    const int first = first_lane(unaligned);
    wave.host->report(&wave, Finding::kMisaligned, access, pc, first, address[first], align, kNobody);
  }
  const I64 bad = (address < wave.recent.begin) | (address + bytes > wave.recent.end);
  if (!(mask_of(bad) & exec)) return exec;
  alignas(64) u64 each[kLanes];
  __builtin_memcpy(each, &address, sizeof each);
  return check_each_global(wave, exec, each, bytes, access, pc);
}

inline bool check_scalar(Wave& wave, u64 address, u32 bytes, u32 pc) {
  if (inside(wave.recent, address, bytes)) return true;
  const Range found = wave.host->allocation(address);
  if (inside(found, address, bytes)) {
    wave.recent = found;
    return true;
  }
  // A wide scalar load may reach past the end of an object, into the same page, as the compiler rounds it up.
  if (inside(found, address, 4)) return true;
  wave.host->report(&wave, Finding::kGlobalBounds, Access::kLoad, pc, 0, address, bytes, kNobody);
  return false;
}

inline u32 lds_conflict(const Wave& wave, const ShadowByte& byte, Access access) {
  const bool atomic = access == Access::kAtomic;
  const u8 me = (u8)wave.index;
  if (byte.write_epoch == wave.epoch && byte.writer != me && !(atomic && byte.atomic)) return byte.writer;
  if (access == Access::kLoad) return kNobody;
  if (byte.read_epoch == wave.epoch && (byte.reader != me || byte.several_read) && !(atomic && byte.read_atomic))
    return byte.reader;
  return kNobody;
}

inline void note_lds_access(const Wave& wave, ShadowByte& byte, Access access) {
  const u8 me = (u8)wave.index;
  if (access != Access::kStore) {
    byte.several_read = byte.read_epoch == wave.epoch && (byte.reader != me || byte.several_read);
    byte.read_atomic = access == Access::kAtomic && (byte.read_epoch != wave.epoch || byte.read_atomic);
    byte.read_epoch = wave.epoch;
    byte.reader = me;
  }
  if (access == Access::kLoad) return;
  byte.written = 1;
  byte.atomic = access == Access::kAtomic;
  byte.write_epoch = wave.epoch;
  byte.writer = me;
}

// `same` says whether a store puts back the bytes that are there already: several waves may do that without harm.
inline void check_lds_bytes(Wave& wave, int lane, u32 offset, u32 bytes, Access access, bool same, u32 pc) {
  bool reported_unset = false, reported_race = false;
  for (u32 at = offset; at < offset + bytes; at++) {
    ShadowByte& byte = wave.shadow[at];
    if (access != Access::kStore && !byte.written && !reported_unset) {
      wave.host->report(&wave, Finding::kLdsUninitialised, access, pc, lane, offset, bytes, kNobody);
      reported_unset = true;
    }
    const u32 other = lds_conflict(wave, byte, access);
    if (other != kNobody && !same && !reported_race) {
      wave.host->report(&wave, Finding::kLdsRace, access, pc, lane, offset, bytes, other);
      reported_race = true;
    }
    note_lds_access(wave, byte, access);
  }
}

template <int Dwords>
__attribute__((noinline)) Mask check_lds(Wave& wave, Mask exec, U32 offset, u32 bytes, Access access, u32 pc,
                                         const U32* data = nullptr) {
  Mask good = 0;
  for_lanes(exec, [&](int i) {
    const u32 at = offset[i], align = bytes < 4 ? bytes : 4;
    if ((u64)at + bytes > wave.lds_bytes) {
      wave.host->report(&wave, Finding::kLdsBounds, access, pc, i, at, bytes, kNobody);
      return;
    }
    if (at & (align - 1))
      wave.host->report(&wave, Finding::kMisaligned, access, pc, i, kSharedAperture + at, align, kNobody);
    bool same = data != nullptr && access == Access::kStore;
    for (int k = 0; same && k < Dwords; k++) {
      const u32 value = data[k][i];
      same = __builtin_memcmp(wave.lds + at + 4 * k, &value, bytes < 4 ? bytes : 4) == 0;
    }
    check_lds_bytes(wave, i, at, bytes, access, same, pc);
    good |= Mask{1} << i;
  });
  return good;
}

inline Mask check_scratch(Wave& wave, Mask exec, U32 offset, u32 bytes, Access access, u32 pc) {
  const Mask outside = mask_of((I32)((offset + bytes > wave.scratch_bytes) | (offset + bytes < offset))) & exec;
  if (!outside) return exec;
  const int first = first_lane(outside);
  wave.host->report(&wave, Finding::kScratchBounds, access, pc, first, offset[first], bytes, kNobody);
  return exec & ~outside;
}

}  // namespace greenlane

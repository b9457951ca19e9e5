// Moves of data between the lanes of a wave.

#pragma once

#include "check.h"
#include "lanes.h"

namespace greenlane {

// What the lane whose number stands in `source` holds; lanes outside `valid` give zero.
inline U32 gather_lanes(U32 data, U32 source) {
#ifdef __AVX512F__
  if constexpr (kLanes == 32) {
    struct Halves {
      __m512i low, high;
    };
    const Halves d = bits_as<Halves>(data), s = bits_as<Halves>(source);
    const Halves moved = {_mm512_permutex2var_epi32(d.low, s.low, d.high),
                          _mm512_permutex2var_epi32(d.low, s.high, d.high)};
    return bits_as<U32>(moved);
  }
#endif
  alignas(64) u32 from[kLanes], index[kLanes], to[kLanes];
  __builtin_memcpy(from, &data, sizeof from);
  __builtin_memcpy(index, &source, sizeof index);
  for (int i = 0; i < kLanes; i++) to[i] = from[index[i] & (kLanes - 1)];
  U32 result;
  __builtin_memcpy(&result, to, sizeof to);
  return result;
}

inline Mask gather_mask(Mask mask, U32 source) {
  return mask_of((I32)(gather_lanes((U32)lanes_of(mask), source)) != 0);
}

// ds_bpermute: each lane names the byte address (four times the number) of the lane it reads; idle lanes read as zero.
inline U32 read_lanes(Wave& wave, Mask exec, U32 address, u32 offset, U32 data, u32 pc) {
  const U32 source = (address + offset) >> 2;
  if constexpr (kSanitize) check_lane(wave, exec, source, pc);
  return gather_lanes(select(exec, data, splat(0)), source & (u32)(kLanes - 1));
}

// ds_permute: each lane names the lane it writes; the highest writer wins.
inline U32 write_lanes(Wave& wave, Mask exec, U32 address, u32 offset, U32 data, u32 pc) {
  const U32 target = (address + offset) >> 2;
  if constexpr (kSanitize) check_lane(wave, exec, target, pc);
  U32 result = splat(0);
  for_lanes(exec, [&](int i) { result[(int)(target[i] & (kLanes - 1))] = data[i]; });
  return result;
}

inline u32 read_lane(U32 data, u32 lane) {
  alignas(64) u32 all[kLanes];
  __builtin_memcpy(all, &data, sizeof all);
  return all[lane & (kLanes - 1)];
}
inline u32 read_first_lane(U32 data, Mask exec) {
  return read_lane(data, first_lane(exec));
}
inline U32 write_lane(U32 old, u32 value, u32 lane) {
  return select(Mask{1} << (lane & (kLanes - 1)), splat(value), old);
}

// A DPP operand: `source` names the lane each lane reads, `valid` the lanes whose source exists. Lanes with no source
// read zero when `zero_invalid`, else they are taken out of `writes`.
inline U32 dpp(U32 data, U32 source, Mask valid, Mask exec, bool fetch_inactive, bool zero_invalid, Mask& writes) {
  if (!fetch_inactive) valid &= gather_mask(exec, source);
  if (!zero_invalid) writes &= valid;
  return select(valid, gather_lanes(data, source), splat(0));
}

// Each lane of a row of 16 picks a lane of the same row (or of the other row of a pair) by a nibble of {high, low}.
inline U32 permlane16(U32 old, U32 data, u32 low, u32 high, bool other_row, bool fetch_inactive, bool zero_invalid,
                      Mask exec) {
  U32 source;
  for (int i = 0; i < kLanes; i++) {
    const u32 nibble = (i % 16 < 8 ? low : high) >> (4 * (i % 8)) & 15;
    source[i] = ((i & ~15) ^ (other_row ? 16 : 0)) + nibble;
  }
  const Mask valid = fetch_inactive ? kAllLanes : gather_mask(exec, source);
  return select(valid, gather_lanes(data, source), zero_invalid ? splat(0) : old);
}
inline U32 permlane16_var(U32 old, U32 data, U32 nibbles, bool other_row, bool fetch_inactive, bool zero_invalid,
                          Mask exec) {
  const U32 lane = lane_numbers();
  const U32 source = ((lane & ~15u) ^ (other_row ? 16u : 0u)) + (nibbles & 15u);
  const Mask valid = fetch_inactive ? kAllLanes : gather_mask(exec, source);
  return select(valid, gather_lanes(data, source), zero_invalid ? splat(0) : old);
}
inline U32 permlane64(U32 data) {
  return gather_lanes(data, (lane_numbers() + 32u) & (u32)(kLanes - 1));
}

}  // namespace greenlane

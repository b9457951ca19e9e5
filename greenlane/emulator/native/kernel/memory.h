// Loads and stores of whole waves: global, flat, scratch and LDS, with quick ways for the usual patterns of addresses.

#pragma once

#include "check.h"

namespace greenlane {

inline U64 address64(U32 low_half, U32 high_half, i64 offset) {
  return join(low_half, high_half) + (u64)offset;
}
inline U64 address64(u64 base, U32 offset, i64 more) {
  return convert<U64>(offset) + (u64)(base + more);
}

inline U64 lds_pointer(const Wave& wave, U32 offset) {
  return convert<U64>(offset & (kLdsCapacity - 1)) + (u64)wave.lds;
}
inline U64 scratch_pointer(const Wave& wave, U32 offset) {
  const U32 inside = offset < wave.scratch_bytes ? offset : splat(0);
  return convert<U64>(inside) + convert<U64>(lane_numbers()) * (u64)wave.scratch_bytes + (u64)wave.scratch;
}

// Where the bytes lie that `dwords` lanes may touch; idle lanes get the address of an active one.
inline U64 safe(Mask exec, U64 address) {
  return select(exec, address, splat64(address[first_lane(exec)]));
}

inline bool all(I64 truth) {
  return mask_of(truth) == kAllLanes;
}

template <int N>
inline void unzip(const u32* rows, U32 (&out)[N]) {  // rows: (kLanes, N)
  if constexpr (N == 1) {
    __builtin_memcpy(&out[0], rows, sizeof(U32));
  } else if constexpr (N == 2) {
    Vector<u32, 2 * kLanes> wide;
    __builtin_memcpy(&wide, rows, sizeof wide);
    out[0] = wide.even;
    out[1] = wide.odd;
  } else if constexpr (N == 4 && kLanes == 32) {
    Vector<u32, 4 * kLanes> wide;
    __builtin_memcpy(&wide, rows, sizeof wide);
    const auto even = wide.even, odd = wide.odd;
    out[0] = even.even;
    out[2] = even.odd;
    out[1] = odd.even;
    out[3] = odd.odd;
  } else {
    for (int k = 0; k < N; k++)
      for (int i = 0; i < kLanes; i++) out[k][i] = rows[i * N + k];
  }
}

// Out of line, as are the stores below: inlined into each of a kernel's hundreds of accesses they double the time to
// compile.
template <int N>
__attribute__((noinline)) void load(Mask exec, U64 address, U32 (&out)[N]) {
  if (!exec) return;
  const u64 base = address[first_lane(exec)];
  const U64 distance = safe(exec, address) - base;
  alignas(64) u32 rows[kLanes * N];
  if (all(distance == 0ull)) {
    u32 value[N];
    __builtin_memcpy(value, (const void*)base, sizeof value);
    for (int k = 0; k < N; k++) out[k] = select(exec, splat(value[k]), out[k]);
    return;
  }
  if (exec == kAllLanes && all(distance == convert<U64>(lane_numbers()) * (u64)(4 * N))) {
    unzip<N>((const u32*)base, out);
    return;
  }
#ifdef __AVX512F__
  if constexpr (N == 1) {
    struct Eighths {
      __m512i at[kLanes / 8];
    };
    struct Results {
      __m256i at[kLanes / 8];
    };
    const Eighths where = bits_as<Eighths>(address);
    Results found = bits_as<Results>(out[0]);
    for (int k = 0; k < kLanes / 8; k++)
      found.at[k] = _mm512_mask_i64gather_epi32(found.at[k], (__mmask8)(exec >> (8 * k)), where.at[k], nullptr, 1);
    out[0] = bits_as<U32>(found);
    return;
  }
#endif
  alignas(64) u64 each[kLanes];
  const U64 pointers = distance + base;
  __builtin_memcpy(each, &pointers, sizeof each);
  for (int i = 0; i < kLanes; i++) __builtin_memcpy(rows + i * N, (const void*)each[i], 4 * N);
  U32 fresh[N];
  unzip<N>(rows, fresh);
  for (int k = 0; k < N; k++) out[k] = select(exec, fresh[k], out[k]);
}

// Bytes and halves, extended to 32 bits by their signedness.
template <class T>
__attribute__((noinline)) U32 load_narrow(Mask exec, U64 address, U32 old) {
  if (!exec) return old;
  const U64 pointers = safe(exec, address);
  const u64 base = pointers[0];
  if (all(pointers - base == convert<U64>(lane_numbers()) * (u64)sizeof(T))) {
    Vector<T, kLanes> packed;
    __builtin_memcpy(&packed, (const void*)base, sizeof packed);
    return select(exec, (U32)convert<I32>(packed), old);
  }
  alignas(64) u64 each[kLanes];
  __builtin_memcpy(each, &pointers, sizeof each);
  alignas(64) i32 values[kLanes];
  for (int i = 0; i < kLanes; i++) {
    T value;
    __builtin_memcpy(&value, (const void*)each[i], sizeof value);
    values[i] = value;
  }
  U32 fresh;
  __builtin_memcpy(&fresh, values, sizeof fresh);
  return select(exec, fresh, old);
}

template <int N>
__attribute__((noinline)) void store(Mask exec, U64 address, const U32 (&data)[N]) {
  if (!exec) return;
  if constexpr (N == 1) {
    const u64 base = address[0];
    if (exec == kAllLanes && all(address - base == convert<U64>(lane_numbers()) * 4ull)) {
      __builtin_memcpy((void*)base, &data[0], sizeof(U32));
      return;
    }
  }
  alignas(64) u64 each[kLanes];
  __builtin_memcpy(each, &address, sizeof each);
  alignas(64) u32 values[N][kLanes];
  for (int k = 0; k < N; k++) __builtin_memcpy(values[k], &data[k], sizeof values[k]);
  for_lanes(exec, [&](int i) {
    for (int k = 0; k < N; k++) __builtin_memcpy((u8*)each[i] + 4 * k, &values[k][i], 4);
  });
}

template <class T>
__attribute__((noinline)) void store_narrow(Mask exec, U64 address, U32 data) {
  if (!exec) return;
  alignas(64) u64 each[kLanes];
  __builtin_memcpy(each, &address, sizeof each);
  alignas(64) u32 values[kLanes];
  __builtin_memcpy(values, &data, sizeof values);
  for_lanes(exec, [&](int i) {
    const T value = (T)values[i];
    __builtin_memcpy((void*)each[i], &value, sizeof value);
  });
}

// The four address spaces. Each gives host pointers for the lanes of `exec` that may be accessed.
struct Global {
  static U64 resolve(Wave& wave, Mask& exec, U64 address, u32 bytes, Access access, u32 pc, const U32* = nullptr) {
    if constexpr (kSanitize) exec = check_global(wave, exec, address, bytes, access, pc);
    return address;
  }
};

struct Lds {
  static U64 resolve(Wave& wave, Mask& exec, U32 offset, u32 bytes, Access access, u32 pc, const U32* data = nullptr) {
    if constexpr (kSanitize) exec = check_lds<1>(wave, exec, offset, bytes, access, pc, bytes <= 4 ? data : nullptr);
    return lds_pointer(wave, offset);
  }
};

struct Scratch {
  static U64 resolve(Wave& wave, Mask& exec, U32 offset, u32 bytes, Access access, u32 pc, const U32* = nullptr) {
    if constexpr (kSanitize) exec = check_scratch(wave, exec, offset, bytes, access, pc);
    return scratch_pointer(wave, offset);
  }
};

struct Flat {
  __attribute__((noinline)) static U64 resolve(Wave& wave, Mask& exec, U64 address, u32 bytes, Access access, u32 pc,
                                               const U32* data = nullptr) {
    const U32 top = high(address);
    Mask shared = mask_of((I32)(top == (u32)(kSharedAperture >> 32))) & exec;
    Mask own = mask_of((I32)(top == (u32)(kPrivateAperture >> 32))) & exec;
    Mask rest = exec & ~(shared | own);
    U64 pointers = address;
    if (rest) pointers = Global::resolve(wave, rest, address, bytes, access, pc);
    if (shared) {
      const Mask whose = shared;
      pointers = select(whose, Lds::resolve(wave, shared, low(address), bytes, access, pc, data), pointers);
    }
    if (own) {
      const Mask whose = own;
      pointers = select(whose, Scratch::resolve(wave, own, low(address), bytes, access, pc), pointers);
    }
    exec = rest | shared | own;
    return pointers;
  }
};

template <class Space, int N, class Address>
inline void load(Wave& wave, Mask exec, Address address, U32 (&out)[N], u32 pc) {
  const Mask asked = exec;
  const U64 pointers = Space::resolve(wave, exec, address, 4 * N, Access::kLoad, pc);
  load<N>(exec, pointers, out);
  if constexpr (kSanitize)
    for (int k = 0; k < N; k++) out[k] = select(asked & ~exec, splat(0), out[k]);
}
template <class Space, class T, class Address>
inline U32 load_narrow(Wave& wave, Mask exec, Address address, U32 old, u32 pc) {
  const U64 pointers = Space::resolve(wave, exec, address, sizeof(T), Access::kLoad, pc);
  return load_narrow<T>(exec, pointers, old);
}
template <class Space, int N, class Address>
inline void store(Wave& wave, Mask exec, Address address, const U32 (&data)[N], u32 pc) {
  const U64 pointers = Space::resolve(wave, exec, address, 4 * N, Access::kStore, pc, data);
  store<N>(exec, pointers, data);
}
template <class Space, class T, class Address>
inline void store_narrow(Wave& wave, Mask exec, Address address, U32 data, u32 pc) {
  const U64 pointers = Space::resolve(wave, exec, address, sizeof(T), Access::kStore, pc, &data);
  store_narrow<T>(exec, pointers, data);
}

template <class T>
inline T scalar_load(Wave& wave, u64 address, u32 bytes, u32 pc) {
  if constexpr (kSanitize)
    if (!check_scalar(wave, address, bytes, pc)) return T{};
  T value;
  __builtin_memcpy(&value, (const void*)address, sizeof value);
  return value;
}

}  // namespace greenlane

// Read-modify-write operations, lane after lane in the order of the lanes, atomic towards other workgroups.

#pragma once

#include "float.h"
#include "memory.h"

namespace greenlane {

struct Add {
  template <class T>
  static T apply(T old, T value) {
    return old + value;
  }
};
struct Sub {
  template <class T>
  static T apply(T old, T value) {
    return old - value;
  }
};
struct ReverseSub {
  template <class T>
  static T apply(T old, T value) {
    return value - old;
  }
};
struct Smaller {
  template <class T>
  static T apply(T old, T value) {
    return value < old ? value : old;
  }
};
struct Larger {
  template <class T>
  static T apply(T old, T value) {
    return value > old ? value : old;
  }
};
struct And {
  template <class T>
  static T apply(T old, T value) {
    return old & value;
  }
};
struct Or {
  template <class T>
  static T apply(T old, T value) {
    return old | value;
  }
};
struct Xor {
  template <class T>
  static T apply(T old, T value) {
    return old ^ value;
  }
};
struct Swap {
  template <class T>
  static T apply(T, T value) {
    return value;
  }
};
struct Increment {
  template <class T>
  static T apply(T old, T limit) {
    return old >= limit ? 0 : old + 1;
  }
};
struct Decrement {
  template <class T>
  static T apply(T old, T limit) {
    return old == 0 || old > limit ? limit : old - 1;
  }
};
struct SubClamped {
  template <class T>
  static T apply(T old, T value) {
    return old < value ? 0 : old - value;
  }
};
// Two halves at a time.
struct AddHalves {
  static u32 apply(u32 old, u32 value) {
    using Pair = Vector<f16, 2>;
    return bits_as<u32>(bits_as<Pair>(old) + bits_as<Pair>(value));
  }
};
struct AddBf16 {
  static u32 apply(u32 old, u32 value) {
    u32 result = 0;
    for (int k = 0; k < 32; k += 16) {
      const float sum = float_of((old >> k) << 16) + float_of((value >> k) << 16);
      const u32 bits = bits_of(sum);
      result |= (sum != sum ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16) << k;
    }
    return result;
  }
};

template <class Operation, class T>
inline T update(T* place, T value) {
  using Raw = decltype([] {
    if constexpr (sizeof(T) == 4)
      return u32{};
    else
      return u64{};
  }());
  Raw* raw = (Raw*)place;
  Raw seen = __atomic_load_n(raw, __ATOMIC_RELAXED);
  for (;;) {
    const T old = bits_as<T>(seen);
    const Raw wanted = bits_as<Raw>((T)Operation::apply(old, value));
    if (__atomic_compare_exchange_n(raw, &seen, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return old;
  }
}

template <class Space, class Operation, class T, class Address>
inline U32 atomic32(Wave& wave, Mask exec, Address address, U32 data, U32 old, u32 pc) {
  const U64 pointers = Space::resolve(wave, exec, address, 4, Access::kAtomic, pc);
  for_lanes(exec,
            [&](int i) { old[i] = bits_as<u32>(update<Operation, T>((T*)pointers[i], bits_as<T>((u32)data[i]))); });
  return old;
}
template <class Space, class Operation, class T, class Address>
inline U64 atomic64(Wave& wave, Mask exec, Address address, U64 data, U64 old, u32 pc) {
  const U64 pointers = Space::resolve(wave, exec, address, 8, Access::kAtomic, pc);
  for_lanes(exec,
            [&](int i) { old[i] = bits_as<u64>(update<Operation, T>((T*)pointers[i], bits_as<T>((u64)data[i]))); });
  return old;
}

template <class Space, class Address>
inline U32 compare_swap32(Wave& wave, Mask exec, Address address, U32 data, U32 expected, U32 old, u32 pc) {
  const U64 pointers = Space::resolve(wave, exec, address, 4, Access::kAtomic, pc);
  for_lanes(exec, [&](int i) {
    u32 seen = expected[i];
    __atomic_compare_exchange_n((u32*)pointers[i], &seen, (u32)data[i], false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    old[i] = seen;
  });
  return old;
}
template <class Space, class Address>
inline U64 compare_swap64(Wave& wave, Mask exec, Address address, U64 data, U64 expected, U64 old, u32 pc) {
  const U64 pointers = Space::resolve(wave, exec, address, 8, Access::kAtomic, pc);
  for_lanes(exec, [&](int i) {
    u64 seen = expected[i];
    __atomic_compare_exchange_n((u64*)pointers[i], &seen, (u64)data[i], false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    old[i] = seen;
  });
  return old;
}

}  // namespace greenlane

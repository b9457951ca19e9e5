// Sixteen numbers at a time, in GCC's vector extensions: the compiler makes one 512-bit, two 256-bit or four 128-bit
// instructions of each operation. What has no portable spelling comes from the isa_*.h that is included before a
// kernel.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace cpu::fast {

constexpr int kLanes = 16;

typedef float F32x16 __attribute__((vector_size(64)));
typedef std::int32_t I32x16 __attribute__((vector_size(64)));
typedef std::uint8_t U8x64 __attribute__((vector_size(64)));
typedef std::uint16_t U16x16 __attribute__((vector_size(32)));

#define LANES_INLINE [[gnu::always_inline]] inline
#define LANES_LAMBDA __attribute__((always_inline))

template <typename Vector>
LANES_INLINE Vector load_lanes(const void* from) {
  Vector value;
  std::memcpy(&value, from, sizeof(Vector));
  return value;
}

template <typename Vector>
LANES_INLINE void store_lanes(void* to, const Vector& value) {
  std::memcpy(to, &value, sizeof(Vector));
}

LANES_INLINE F32x16 all(float v) {
  return F32x16{v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v};
}
LANES_INLINE I32x16 all(std::int32_t v) {
  return I32x16{v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v};
}

// Calls body(0), body(1).. with constants: arrays that are indexed by them stay in registers.
template <int Count, typename Body>
LANES_INLINE void unrolled(const Body& body) {
  const auto each = [&]<int... I>(std::integer_sequence<int, I...>)
                        LANES_LAMBDA { (body(std::integral_constant<int, I>{}), ...); };
  each(std::make_integer_sequence<int, Count>{});
}

}  // namespace cpu::fast

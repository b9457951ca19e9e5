// Plain numbers in device memory, read and written as float.
#pragma once

#include <cstdint>

#include "vendor.h"
#include "vt/dtype.h"
#include "vt/error.h"

namespace vt::gpu {

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

__device__ inline float bfloat16_to_float(std::uint16_t bits) {
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}
// Round to nearest even; NaN stays NaN.
__device__ inline std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__device__ inline float load(const float* p) {
  return *p;
}
__device__ inline float load(const Half* p) {
  return vendor::half_to_float(p->bits);
}
__device__ inline float load(const BFloat16* p) {
  return bfloat16_to_float(p->bits);
}

__device__ inline void store(float* p, float value) {
  *p = value;
}
__device__ inline void store(Half* p, float value) {
  p->bits = vendor::float_to_half(value);
}
__device__ inline void store(BFloat16* p, float value) {
  p->bits = float_to_bfloat16(value);
}

// Eight numbers from an address aligned to eight numbers.
__device__ inline void load8(const float* p, float (&out)[8]) {
  const float4 low = reinterpret_cast<const float4*>(p)[0];
  const float4 high = reinterpret_cast<const float4*>(p)[1];
  out[0] = low.x, out[1] = low.y, out[2] = low.z, out[3] = low.w;
  out[4] = high.x, out[5] = high.y, out[6] = high.z, out[7] = high.w;
}
__device__ inline void unpack(const BFloat16*, uint4 raw, float (&out)[8]) {
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = __uint_as_float(words[i] << 16);
    out[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}
__device__ inline void unpack(const Half*, uint4 raw, float (&out)[8]) {
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = vendor::half_to_float(static_cast<std::uint16_t>(words[i] & 0xffffu));
    out[2 * i + 1] = vendor::half_to_float(static_cast<std::uint16_t>(words[i] >> 16));
  }
}
template <typename T>
__device__ inline void load8(const T* p, float (&out)[8]) {
  unpack(p, *reinterpret_cast<const uint4*>(p), out);
}

// Calls `body` with a null pointer of the device type, so that one launcher serves every plain type.
template <typename Body>
void with_type(DType dtype, const char* what, Body&& body) {
  switch (dtype) {
    case DType::F32:
      return body(static_cast<float*>(nullptr));
    case DType::F16:
      return body(static_cast<Half*>(nullptr));
    case DType::BF16:
      return body(static_cast<BFloat16*>(nullptr));
    default:
      throw Error(std::string(what) + " takes F32, F16 or BF16, not " + std::string(name(dtype)));
  }
}

// Activations are F32 or BF16.
template <typename Body>
void with_activation(DType dtype, const char* what, Body&& body) {
  switch (dtype) {
    case DType::F32:
      return body(static_cast<float*>(nullptr));
    case DType::BF16:
      return body(static_cast<BFloat16*>(nullptr));
    default:
      throw Error(std::string(what) + " takes F32 or BF16 activations, not " + std::string(name(dtype)));
  }
}

}  // namespace vt::gpu

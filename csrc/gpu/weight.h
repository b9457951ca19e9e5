// How weights lie in device memory, and reading eight of them at a time.
//
// A weight is cut into planes that hold one row after another, so that neighbouring lanes read neighbouring bytes. Rows
// are padded with zeros to a multiple of eight columns. `scale * q + offset` gives the same bits as the file's formula,
// because every product is exact in float32.
#pragma once

#include <cstdint>

#include "gpu/number.h"
#include "gpu/planes.h"
#include "vendor.h"
#include "vt/tensor.h"

namespace vt::gpu {

struct WeightView {
  const unsigned char* quants;  // low bits or plain numbers
  const unsigned char* high;    // the bits above the low four
  const unsigned char* scales;  // per group of 32 (Q6_K: 16)
  const unsigned char* super;   // per 256: factor of the scales
  int rows;
  int chunks;  // per row
};

inline WeightView view_of(const Tensor& weight) {
  const PlaneOffsets at = plane_offsets(weight.dtype, weight.shape[0], weight.shape[1]);
  const auto* base = weight.as<unsigned char>();
  return {base,
          base + at.high,
          base + at.scales,
          base + at.super,
          static_cast<int>(weight.shape[0]),
          static_cast<int>((weight.shape[1] + kChunk - 1) / kChunk)};
}

template <typename T>
__device__ inline T read_as(const unsigned char* plane, std::int64_t index) {
  return reinterpret_cast<const T*>(plane)[index];
}

__device__ inline float low_half(std::uint32_t pair) {
  return vendor::half_to_float(static_cast<std::uint16_t>(pair & 0xffffu));
}
__device__ inline float high_half(std::uint32_t pair) {
  return vendor::half_to_float(static_cast<std::uint16_t>(pair >> 16));
}

// Each format reads a chunk raw (so that many loads are in flight) and expands it later. `at` = row * chunks + chunk.
struct FormatF32 {
  static constexpr int kLine = 4;  // chunks in 128 bytes of the plane; 0: not prefetched
  struct Raw {
    uint4 low, high;
  };
  static __device__ Raw load(const WeightView& w, std::int64_t at) {
    return {vendor::load_once(w.quants + at * 32), vendor::load_once(w.quants + at * 32 + 16)};
  }
  static __device__ void expand(const Raw& raw, float (&out)[kChunk]) {
    const std::uint32_t words[kChunk] = {raw.low.x,  raw.low.y,  raw.low.z,  raw.low.w,
                                         raw.high.x, raw.high.y, raw.high.z, raw.high.w};
    for (int i = 0; i < kChunk; ++i) out[i] = __uint_as_float(words[i]);
  }
};

template <typename T>
struct Format16 {
  static constexpr int kLine = 8;
  using Raw = uint4;
  static __device__ Raw load(const WeightView& w, std::int64_t at) { return vendor::load_once(w.quants + at * 16); }
  static __device__ void expand(const Raw& raw, float (&out)[kChunk]) {
    unpack(static_cast<const T*>(nullptr), raw, out);
  }
};

// Q4_0, Q4_1; with kHigh Q5_0, Q5_1. A half scale and a half offset per 32.
template <bool kHigh>
struct FormatPair {
  static constexpr int kLine = 0;
  struct Raw {
    std::uint32_t quants, scale, high;
  };
  static __device__ Raw load(const WeightView& w, std::int64_t at) {
    return {read_as<std::uint32_t>(w.quants, at), read_as<std::uint32_t>(w.scales, at / 4),
            kHigh ? read_as<std::uint8_t>(w.high, at) : 0u};
  }
  static __device__ void expand(const Raw& raw, float (&out)[kChunk]) {
    const float scale = low_half(raw.scale), offset = high_half(raw.scale);
    for (int i = 0; i < kChunk; ++i) {
      std::uint32_t q = raw.quants >> (4 * i) & 15u;
      if (kHigh) q |= (raw.high >> i & 1u) << 4;
      out[i] = scale * static_cast<float>(q) + offset;
    }
  }
};

struct FormatQ8 {
  static constexpr int kLine = 0;
  struct Raw {
    std::uint32_t low, high, scale;
  };
  static __device__ Raw load(const WeightView& w, std::int64_t at) {
    const uint2 quants = read_as<uint2>(w.quants, at);
    return {quants.x, quants.y, read_as<std::uint16_t>(w.scales, at / 4)};
  }
  static __device__ void expand(const Raw& raw, float (&out)[kChunk]) {
    const float scale = low_half(raw.scale);
    for (int i = 0; i < kChunk; ++i) {
      const std::uint32_t word = i < 4 ? raw.low : raw.high;
      out[i] = scale * static_cast<float>(static_cast<std::int8_t>(word >> (8 * (i % 4)) & 255u));
    }
  }
};

// Q4_K; with kHigh Q5_K. Scale and minimum of 6 bits per 32, two halves per 256.
template <bool kHigh>
struct FormatK {
  static constexpr int kLine = 0;
  struct Raw {
    std::uint32_t quants, super, scale, high;
  };
  static __device__ Raw load(const WeightView& w, std::int64_t at) {
    return {read_as<std::uint32_t>(w.quants, at), read_as<std::uint32_t>(w.super, at / 32),
            read_as<std::uint16_t>(w.scales, at / 4), kHigh ? read_as<std::uint8_t>(w.high, at) : 0u};
  }
  static __device__ void expand(const Raw& raw, float (&out)[kChunk]) {
    const float scale = low_half(raw.super) * static_cast<float>(raw.scale & 255u);
    const float minimum = high_half(raw.super) * static_cast<float>(raw.scale >> 8);
    for (int i = 0; i < kChunk; ++i) {
      std::uint32_t q = raw.quants >> (4 * i) & 15u;
      if (kHigh) q |= (raw.high >> i & 1u) << 4;
      out[i] = scale * static_cast<float>(q) - minimum;
    }
  }
};

struct FormatQ6K {
  static constexpr int kLine = 0;
  struct Raw {
    std::uint32_t quants, high, super;
    std::int32_t scale;
  };
  static __device__ Raw load(const WeightView& w, std::int64_t at) {
    return {read_as<std::uint32_t>(w.quants, at), read_as<std::uint16_t>(w.high, at),
            read_as<std::uint16_t>(w.super, at / 32), read_as<std::int8_t>(w.scales, at / 2)};
  }
  static __device__ void expand(const Raw& raw, float (&out)[kChunk]) {
    const float scale = low_half(raw.super) * static_cast<float>(raw.scale);
    for (int i = 0; i < kChunk; ++i) {
      const std::uint32_t q = (raw.quants >> (4 * i) & 15u) | (raw.high >> (2 * i) & 3u) << 4;
      out[i] = scale * static_cast<float>(static_cast<std::int32_t>(q) - 32);
    }
  }
};

// Calls `body` with a value of the format's type.
template <typename Body>
void with_format(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::F32:
      return body(FormatF32{});
    case DType::F16:
      return body(Format16<Half>{});
    case DType::BF16:
      return body(Format16<BFloat16>{});
    case DType::Q4_0:
    case DType::Q4_1:
      return body(FormatPair<false>{});
    case DType::Q5_0:
    case DType::Q5_1:
      return body(FormatPair<true>{});
    case DType::Q8_0:
      return body(FormatQ8{});
    case DType::Q4_K:
      return body(FormatK<false>{});
    case DType::Q5_K:
      return body(FormatK<true>{});
    case DType::Q6_K:
      return body(FormatQ6K{});
    default:
      throw Error("a weight cannot be of type " + std::string(name(dtype)));
  }
}

}  // namespace vt::gpu

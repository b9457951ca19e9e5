// The block formats of GGUF taken apart: quants in order, high bits, scales.
#include "gpu/repack.h"

#include <cstring>

#include "vt/error.h"

namespace vt::gpu {
namespace {

// Where the next group of weights goes.
struct Cursor {
  const HostPlanes& planes;
  std::size_t weight;  // index of the block's first weight in the whole matrix

  void put_quant(int i, int value) const {
    const std::size_t at = weight + i;
    const int shift = at % 2 * 4;
    unsigned char& byte = planes.quants[at / 2];
    byte = static_cast<unsigned char>((byte & (0xf0 >> shift)) | value << shift);
  }
  void put_high_bit(int i, int bit) const {
    const std::size_t at = weight + i;
    const int shift = at % 8;
    unsigned char& byte = planes.high[at / 8];
    byte = static_cast<unsigned char>((byte & ~(1 << shift)) | bit << shift);
  }
  void put_high_pair(int i, int bits) const {
    const std::size_t at = weight + i;
    const int shift = at % 4 * 2;
    unsigned char& byte = planes.high[at / 4];
    byte = static_cast<unsigned char>((byte & ~(3 << shift)) | bits << shift);
  }
};

// -factor * half, exact: the exponent grows by log2(factor). Denormals go through float.
std::uint16_t times_minus_power_of_two(std::uint16_t half, int log2_factor) {
  const int exponent = half >> 10 & 31;
  std::uint16_t sign = static_cast<std::uint16_t>(~half & 0x8000u);
  std::uint16_t magnitude = half & 0x7fffu;
  if (exponent == 31) return sign | magnitude;
  if (exponent != 0) {
    if (exponent + log2_factor >= 31) throw Error("a block scale is too large for this format");
    return static_cast<std::uint16_t>(sign | (magnitude + (log2_factor << 10)));
  }
  int mantissa = magnitude;  // value = mantissa * 2^-24
  int shifted = 0;
  while (mantissa < 1024 && shifted < log2_factor && mantissa != 0) mantissa <<= 1, ++shifted;
  if (mantissa < 1024) return static_cast<std::uint16_t>(sign | mantissa);
  const int normal_exponent = 1 + log2_factor - shifted;
  return static_cast<std::uint16_t>(sign | normal_exponent << 10 | (mantissa & 1023));
}

std::uint16_t read_half(const unsigned char* at) {
  std::uint16_t value;
  std::memcpy(&value, at, 2);
  return value;
}

void put_pair_scale(const Cursor& to, std::uint16_t scale, std::uint16_t offset) {
  std::memcpy(to.planes.scales + to.weight / 32 * 4, &scale, 2);
  std::memcpy(to.planes.scales + to.weight / 32 * 4 + 2, &offset, 2);
}

void put_nibbles(const Cursor& to, const unsigned char* quants) {
  for (int i = 0; i < 16; ++i) {
    to.put_quant(i, quants[i] & 15);
    to.put_quant(i + 16, quants[i] >> 4);
  }
}

void put_high_bits(const Cursor& to, const unsigned char* bits) {
  for (int i = 0; i < 32; ++i) to.put_high_bit(i, bits[i / 8] >> (i % 8) & 1);
}

void repack_q4_0(const unsigned char* block, const Cursor& to) {
  const std::uint16_t scale = read_half(block);
  put_pair_scale(to, scale, times_minus_power_of_two(scale, 3));
  put_nibbles(to, block + 2);
}

void repack_q4_1(const unsigned char* block, const Cursor& to) {
  put_pair_scale(to, read_half(block), read_half(block + 2));
  put_nibbles(to, block + 4);
}

void repack_q5_0(const unsigned char* block, const Cursor& to) {
  const std::uint16_t scale = read_half(block);
  put_pair_scale(to, scale, times_minus_power_of_two(scale, 4));
  put_high_bits(to, block + 2);
  put_nibbles(to, block + 6);
}

void repack_q5_1(const unsigned char* block, const Cursor& to) {
  put_pair_scale(to, read_half(block), read_half(block + 2));
  put_high_bits(to, block + 4);
  put_nibbles(to, block + 8);
}

void repack_q8_0(const unsigned char* block, const Cursor& to) {
  std::memcpy(to.planes.scales + to.weight / 32 * 2, block, 2);
  std::memcpy(to.planes.quants + to.weight, block + 2, 32);
}

// The twelve bytes that hold eight scales and eight minimums of six bits.
void put_k_scales(const Cursor& to, const unsigned char* packed) {
  for (int j = 0; j < 8; ++j) {
    unsigned char* out = to.planes.scales + (to.weight / 32 + j) * 2;
    if (j < 4) {
      out[0] = packed[j] & 63;
      out[1] = packed[j + 4] & 63;
    } else {
      out[0] = static_cast<unsigned char>((packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4);
      out[1] = static_cast<unsigned char>((packed[j + 4] >> 4) | (packed[j] >> 6) << 4);
    }
  }
}

void put_k_nibbles(const Cursor& to, const unsigned char* quants) {
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 32; ++i) {
      to.put_quant(64 * j + i, quants[32 * j + i] & 15);
      to.put_quant(64 * j + 32 + i, quants[32 * j + i] >> 4);
    }
  }
}

void repack_q4_k(const unsigned char* block, const Cursor& to) {
  std::memcpy(to.planes.super + to.weight / 256 * 4, block, 4);
  put_k_scales(to, block + 4);
  put_k_nibbles(to, block + 16);
}

void repack_q5_k(const unsigned char* block, const Cursor& to) {
  std::memcpy(to.planes.super + to.weight / 256 * 4, block, 4);
  put_k_scales(to, block + 4);
  for (int i = 0; i < 256; ++i) to.put_high_bit(i, block[16 + i % 32] >> (i / 32) & 1);
  put_k_nibbles(to, block + 48);
}

void repack_q6_k(const unsigned char* block, const Cursor& to) {
  std::memcpy(to.planes.super + to.weight / 256 * 2, block + 208, 2);
  std::memcpy(to.planes.scales + to.weight / 16, block + 192, 16);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, quarter = i % 128 / 32, lane = i % 32;
    const unsigned char low = block[64 * part + 32 * (quarter % 2) + lane];
    to.put_quant(i, quarter < 2 ? low & 15 : low >> 4);
    to.put_high_pair(i, block[128 + 32 * part + lane] >> (2 * quarter) & 3);
  }
}

using RepackBlock = void (*)(const unsigned char*, const Cursor&);

RepackBlock repack_for(DType dtype) {
  switch (dtype) {
    case DType::Q4_0:
      return repack_q4_0;
    case DType::Q4_1:
      return repack_q4_1;
    case DType::Q5_0:
      return repack_q5_0;
    case DType::Q5_1:
      return repack_q5_1;
    case DType::Q8_0:
      return repack_q8_0;
    case DType::Q4_K:
      return repack_q4_k;
    case DType::Q5_K:
      return repack_q5_k;
    case DType::Q6_K:
      return repack_q6_k;
    default:
      throw Error("cannot repack a weight of type " + std::string(name(dtype)));
  }
}

}  // namespace

void repack_rows(const Tensor& part, std::int64_t first_row, const HostPlanes& planes) {
  const RepackBlock repack = repack_for(part.dtype);
  const BlockShape block = block_shape(part.dtype);
  const std::int64_t blocks = part.cols() / block.elements;
  for (std::int64_t row = 0; row < part.rows(); ++row) {
    const auto* from = part.row<unsigned char>(row);
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto weight = static_cast<std::size_t>((first_row + row) * part.cols() + b * block.elements);
      repack(from + b * block.bytes, Cursor{planes, weight});
    }
  }
}

}  // namespace vt::gpu

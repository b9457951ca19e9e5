// See pack.h.
#include "fast/pack.h"

#include <algorithm>
#include <cstring>

#include "vt/half.h"

namespace cpu::fast {
namespace {

using Bytes = const std::uint8_t*;

// 32 inputs of one row.
struct Block {
  std::uint8_t quants[kBlock];
  std::uint16_t scales[2];  // 16-bit floats
  std::uint16_t minimum;
};

std::uint16_t half_of(float value) {
  return vt::float_to_f16(value);
}
std::uint16_t load_half(Bytes from) {
  return vt::load<std::uint16_t>(from);
}

void nibbles(Bytes from, Block& out) {
  for (int i = 0; i < 16; ++i) {
    out.quants[i] = from[i] & 15;
    out.quants[i + 16] = from[i] >> 4;
  }
}

void fifth_bits(std::uint32_t bits, Block& out) {
  for (int i = 0; i < kBlock; ++i) out.quants[i] |= static_cast<std::uint8_t>(((bits >> i) & 1u) << 4);
}

void read_q5(Bytes from, int header, Block& out) {
  nibbles(from + header + 4, out);
  fifth_bits(vt::load<std::uint32_t>(from + header), out);
}

// Scales and minima of six bits in twelve bytes.
int packed_scale(Bytes packed, int sub) {
  return sub < 4 ? packed[sub] & 63 : (packed[sub + 4] & 15) | ((packed[sub - 4] >> 6) << 4);
}
int packed_minimum(Bytes packed, int sub) {
  return sub < 4 ? packed[sub + 4] & 63 : (packed[sub + 4] >> 4) | ((packed[sub] >> 6) << 4);
}

void read_k_scales(Bytes from, int sub, Block& out) {
  out.scales[0] = half_of(vt::load_f16(from) * static_cast<float>(packed_scale(from + 4, sub)));
  out.minimum = half_of(-vt::load_f16(from + 2) * static_cast<float>(packed_minimum(from + 4, sub)));
}

void read_q4_k(Bytes from, int sub, Block& out) {
  const Bytes bytes = from + 16 + sub / 2 * 32;
  for (int i = 0; i < kBlock; ++i) out.quants[i] = sub % 2 ? bytes[i] >> 4 : bytes[i] & 15;
  read_k_scales(from, sub, out);
}

void read_q5_k(Bytes from, int sub, Block& out) {
  const Bytes bytes = from + 48 + sub / 2 * 32;
  for (int i = 0; i < kBlock; ++i) {
    const int low = sub % 2 ? bytes[i] >> 4 : bytes[i] & 15;
    out.quants[i] = static_cast<std::uint8_t>(low | (((from[16 + i] >> sub) & 1) << 4));
  }
  read_k_scales(from, sub, out);
}

void read_q6_k(Bytes from, int sub, Block& out) {
  const int half = sub / 4;
  const int quarter = sub % 4;
  const Bytes low = from + half * 64 + quarter % 2 * 32;
  const Bytes high = from + 128 + half * 32;
  for (int i = 0; i < kBlock; ++i) {
    const int four = quarter < 2 ? low[i] & 15 : low[i] >> 4;
    out.quants[i] = static_cast<std::uint8_t>(four | (((high[i] >> (2 * quarter)) & 3) << 4));
  }
  for (int i = 0; i < 2; ++i) {
    const auto scale = static_cast<std::int8_t>(from[192 + sub * 2 + i]);
    out.scales[i] = half_of(vt::load_f16(from + 208) * static_cast<float>(scale));
  }
}

void read_block(vt::DType dtype, Bytes row, std::int64_t block, Block& out) {
  const vt::BlockShape shape = vt::block_shape(dtype);
  const int per_file_block = shape.elements / kBlock;
  const Bytes from = row + block / per_file_block * shape.bytes;
  const auto sub = static_cast<int>(block % per_file_block);
  out.scales[0] = load_half(from);
  switch (dtype) {
    case vt::DType::Q5_0:
      return read_q5(from, 2, out);
    case vt::DType::Q5_1:
      out.minimum = load_half(from + 2);
      return read_q5(from, 4, out);
    case vt::DType::Q4_K:
      return read_q4_k(from, sub, out);
    case vt::DType::Q5_K:
      return read_q5_k(from, sub, out);
    default:
      return read_q6_k(from, sub, out);
  }
}

// Which byte of which vector holds input `i` of a row.
int place(int row, int i) {
  return 64 * (i / 4) + 4 * row + i % 4;
}

void write_quants(const PackedFormat& format, int row, const Block& block, std::uint8_t* out) {
  for (int i = 0; i < kBlock; ++i) {
    const int at = place(row, i % 16);
    const int vector = i / 4;
    const int quant = block.quants[i];
    out[at] |= static_cast<std::uint8_t>((quant & 15) << (i < 16 ? 0 : 4));
    const int lane = 4 * row + i % 4;
    if (format.bits == 5) out[256 + lane] |= static_cast<std::uint8_t>((quant >> 4) << vector);
    if (format.bits == 6) {
      out[256 + 64 * (vector / 4) + lane] |= static_cast<std::uint8_t>((quant >> 4) << (2 * (vector % 4)));
    }
  }
}

void write_scales(const PackedFormat& format, int row, const Block& block, std::uint8_t* out) {
  auto* scales = out + format.quant_bytes();
  for (int set = 0; set < format.scale_sets; ++set) std::memcpy(scales + 32 * set + 2 * row, &block.scales[set], 2);
  if (format.has_minimum()) std::memcpy(scales + 32 + 2 * row, &block.minimum, 2);
}

// The file's nibbles and bytes of these formats are already four inputs of one row; they only move.
void move_simple(vt::DType dtype, Bytes from, int row, std::uint8_t* out) {
  const bool eight = dtype == vt::DType::Q8_0;
  const int header = dtype == vt::DType::Q4_1 ? 4 : 2;
  const std::uint32_t flip = eight ? 0x80808080u : 0u;
  for (int vector = 0; vector < (eight ? 8 : 4); ++vector) {
    const std::uint32_t four = vt::load<std::uint32_t>(from + header + 4 * vector) ^ flip;
    std::memcpy(out + 64 * vector + 4 * row, &four, 4);
  }
  std::memcpy(out + (eight ? 512 : 256) + 2 * row, from, 2);
  if (header == 4) std::memcpy(out + 256 + 32 + 2 * row, from + 2, 2);
}

void pack_quantised(const vt::Tensor& file, std::int64_t first, int rows, std::uint8_t* group) {
  const PackedFormat format = packed_format(layout_for(file.dtype));
  const bool simple = file.dtype == vt::DType::Q4_0 || file.dtype == vt::DType::Q4_1 || file.dtype == vt::DType::Q8_0;
  const std::int64_t blocks = file.cols() / kBlock;
  for (std::int64_t b = 0; b < blocks; ++b, group += format.block_bytes()) {
    if (!simple || rows < kGroup) std::memset(group, 0, static_cast<std::size_t>(format.block_bytes()));
    for (int row = 0; row < rows; ++row) {
      const Bytes from = file.row<const std::uint8_t>(first + row);
      if (simple) {
        move_simple(file.dtype, from + b * vt::block_shape(file.dtype).bytes, row, group);
        continue;
      }
      Block block{};
      read_block(file.dtype, from, b, block);
      write_quants(format, row, block, group);
      write_scales(format, row, block, group);
    }
  }
}

void pack_floats(const vt::Tensor& file, std::int64_t first, int rows, std::uint8_t* group) {
  const int width = vt::block_shape(file.dtype).bytes;
  for (std::int64_t i = 0; i < file.cols(); ++i) {
    for (int row = 0; row < kGroup; ++row, group += width) {
      if (row < rows) {
        std::memcpy(group, file.row<const char>(first + row) + i * width, static_cast<std::size_t>(width));
      } else {
        std::memset(group, 0, static_cast<std::size_t>(width));
      }
    }
  }
}

int quant_at(const PackedFormat& format, Bytes block, int row, int i) {
  if (format.bits == 8) return block[place(row, i)];
  const int nibble = (block[place(row, i % 16)] >> (i < 16 ? 0 : 4)) & 15;
  const int lane = 4 * row + i % 4;
  const int vector = i / 4;
  if (format.bits == 5) return nibble | (((block[256 + lane] >> vector) & 1) << 4);
  if (format.bits == 6) {
    return nibble | (((block[256 + 64 * (vector / 4) + lane] >> (2 * (vector % 4))) & 3) << 4);
  }
  return nibble;
}

void unpack_block(const PackedFormat& format, Bytes block, int row, float* out) {
  const Bytes scales = block + format.quant_bytes();
  for (int i = 0; i < kBlock; ++i) {
    const float scale = vt::load_f16(scales + (format.scale_sets == 2 && i >= 16 ? 32 : 0) + 2 * row);
    const float quant = static_cast<float>(quant_at(format, block, row, i) - format.offset);
    out[i] = format.has_minimum() ? scale * quant + vt::load_f16(scales + 32 + 2 * row) : scale * quant;
  }
}

}  // namespace

void pack_group(const vt::Tensor& file, std::int64_t first, std::uint8_t* group) {
  const auto rows = static_cast<int>(std::min<std::int64_t>(kGroup, file.rows() - first));
  if (is_float(layout_for(file.dtype))) {
    pack_floats(file, first, rows, group);
  } else {
    pack_quantised(file, first, rows, group);
  }
}

void unpack_row(Layout layout, const std::uint8_t* weight, std::int64_t row, std::int64_t inputs, float* out) {
  const Bytes group = weight + row / kGroup * group_bytes(layout, inputs);
  const auto lane = static_cast<int>(row % kGroup);
  if (is_float(layout)) {
    const vt::DType dtype = layout == Layout::f32   ? vt::DType::F32
                            : layout == Layout::f16 ? vt::DType::F16
                                                    : vt::DType::BF16;
    for (std::int64_t i = 0; i < inputs; ++i) out[i] = vt::load_as_float(dtype, group, i * kGroup + lane);
    return;
  }
  const PackedFormat format = packed_format(layout);
  for (std::int64_t b = 0; b < inputs / kBlock; ++b) {
    unpack_block(format, group + b * format.block_bytes(), lane, out + b * kBlock);
  }
}

}  // namespace cpu::fast

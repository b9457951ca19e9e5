// See dequantize.h. A block of Q4_0..Q8_0 is 32 elements with one scale; a block of the K formats is 256 elements in
// sub-blocks with scales of their own.
#include "reference/dequantize.h"

#include <string>

#include "device.h"
#include "reference/ops.h"
#include "vt/counters.h"
#include "vt/half.h"

namespace cpu::reference {
namespace {

using Bytes = const std::uint8_t*;

void block_q4_0(Bytes in, float* out) {
  const float scale = vt::load_f16(in);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>((in[2 + i] & 15) - 8);
    out[i + 16] = scale * static_cast<float>((in[2 + i] >> 4) - 8);
  }
}

void block_q4_1(Bytes in, float* out) {
  const float scale = vt::load_f16(in);
  const float minimum = vt::load_f16(in + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(in[4 + i] & 15) + minimum;
    out[i + 16] = scale * static_cast<float>(in[4 + i] >> 4) + minimum;
  }
}

// The fifth bits of 32 elements lie in one word, element i at bit i.
int fifth_bit(std::uint32_t bits, int i) {
  return static_cast<int>((bits >> i) & 1u) << 4;
}

void block_q5_0(Bytes in, float* out) {
  const float scale = vt::load_f16(in);
  const auto high = vt::load<std::uint32_t>(in + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(((in[6 + i] & 15) | fifth_bit(high, i)) - 16);
    out[i + 16] = scale * static_cast<float>(((in[6 + i] >> 4) | fifth_bit(high, i + 16)) - 16);
  }
}

void block_q5_1(Bytes in, float* out) {
  const float scale = vt::load_f16(in);
  const float minimum = vt::load_f16(in + 2);
  const auto high = vt::load<std::uint32_t>(in + 4);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>((in[8 + i] & 15) | fifth_bit(high, i)) + minimum;
    out[i + 16] = scale * static_cast<float>((in[8 + i] >> 4) | fifth_bit(high, i + 16)) + minimum;
  }
}

void block_q8_0(Bytes in, float* out) {
  const float scale = vt::load_f16(in);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(static_cast<std::int8_t>(in[2 + i]));
}

struct ScaleAndMin {
  float scale;
  float minimum;
};

// Eight 6-bit scales and eight 6-bit minima in 12 bytes.
ScaleAndMin packed_scale(Bytes packed, int i) {
  if (i < 4) return {static_cast<float>(packed[i] & 63), static_cast<float>(packed[i + 4] & 63)};
  return {static_cast<float>((packed[i + 4] & 15) | ((packed[i - 4] >> 6) << 4)),
          static_cast<float>((packed[i + 4] >> 4) | ((packed[i] >> 6) << 4))};
}

void block_q4_k(Bytes in, float* out) {
  const float scale = vt::load_f16(in);
  const float minimum = vt::load_f16(in + 2);
  const Bytes quants = in + 16;
  for (int sub = 0; sub < 8; ++sub) {
    const ScaleAndMin part = packed_scale(in + 4, sub);
    const Bytes bytes = quants + sub / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int quant = sub % 2 ? bytes[i] >> 4 : bytes[i] & 15;
      out[sub * 32 + i] = scale * part.scale * static_cast<float>(quant) - minimum * part.minimum;
    }
  }
}

void block_q5_k(Bytes in, float* out) {
  const float scale = vt::load_f16(in);
  const float minimum = vt::load_f16(in + 2);
  const Bytes high = in + 16;
  const Bytes quants = in + 48;
  for (int sub = 0; sub < 8; ++sub) {
    const ScaleAndMin part = packed_scale(in + 4, sub);
    const Bytes bytes = quants + sub / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int quant = (sub % 2 ? bytes[i] >> 4 : bytes[i] & 15) | (((high[i] >> sub) & 1) << 4);
      out[sub * 32 + i] = scale * part.scale * static_cast<float>(quant) - minimum * part.minimum;
    }
  }
}

void block_q6_k(Bytes in, float* out) {
  const float scale = vt::load_f16(in + 208);
  for (int half = 0; half < 2; ++half) {
    const Bytes low = in + half * 64;
    const Bytes high = in + 128 + half * 32;
    const auto* scales = reinterpret_cast<const std::int8_t*>(in + 192 + half * 8);
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        const int byte = low[(quarter % 2) * 32 + i];
        const int four_bits = quarter < 2 ? byte & 15 : byte >> 4;
        const int quant = (four_bits | (((high[i] >> (2 * quarter)) & 3) << 4)) - 32;
        const auto part = static_cast<float>(scales[quarter * 2 + i / 16]);
        out[half * 128 + quarter * 32 + i] = scale * part * static_cast<float>(quant);
      }
    }
  }
}

void one_f32(Bytes in, float* out) {
  *out = vt::load<float>(in);
}
void one_f16(Bytes in, float* out) {
  *out = vt::load_f16(in);
}
void one_bf16(Bytes in, float* out) {
  *out = vt::bf16_to_float(vt::load<std::uint16_t>(in));
}

using BlockReader = void (*)(Bytes, float*);

BlockReader reader_of(vt::DType dtype) {
  switch (dtype) {
    case vt::DType::F32:
      return one_f32;
    case vt::DType::F16:
      return one_f16;
    case vt::DType::BF16:
      return one_bf16;
    case vt::DType::Q4_0:
      return block_q4_0;
    case vt::DType::Q4_1:
      return block_q4_1;
    case vt::DType::Q5_0:
      return block_q5_0;
    case vt::DType::Q5_1:
      return block_q5_1;
    case vt::DType::Q8_0:
      return block_q8_0;
    case vt::DType::Q4_K:
      return block_q4_k;
    case vt::DType::Q5_K:
      return block_q5_k;
    case vt::DType::Q6_K:
      return block_q6_k;
    default:
      throw vt::Error("cannot dequantise " + std::string(vt::name(dtype)));
  }
}

}  // namespace

void dequantize_row(vt::DType dtype, const void* in, float* out, std::int64_t count) {
  const BlockReader read = reader_of(dtype);
  const vt::BlockShape block = vt::block_shape(dtype);
  auto bytes = static_cast<Bytes>(in);
  for (std::int64_t i = 0; i < count; i += block.elements, bytes += block.bytes) read(bytes, out + i);
}

void dequantize(vt::Queue* queue, const vt::DequantizeArgs& args) {
  static vt::LaunchCounter counter("dequantize");
  counter.add();
  reader_of(args.in.dtype);
  pool_of(queue).split(args.in.rows(), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      dequantize_row(args.in.dtype, args.in.row<const char>(row), args.out.row(row), args.in.cols());
    }
  });
}

}  // namespace cpu::reference

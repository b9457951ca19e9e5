// What each instruction set brings: the inner loops, on plain pointers.
#pragma once

#include <array>
#include <cstdint>

#include "fast/packed.h"

namespace cpu::fast {

constexpr int kPanel = 16;  // tokens whose scales lie side by side

// Of one panel's tokens, block by block.
struct Panel {
  const float* scales;       // (inputs / 32, 16)
  const float* scaled_sums;  // (inputs / 32, 16) scale times the sum of the block's quants
  const std::int32_t* sums;  // (inputs / 32, 2, 16) sums of the quants of each half block

  // To the next block.
  void next() {
    scales += kPanel;
    scaled_sums += kPanel;
    sums += 2 * kPanel;
  }
};

// Tokens rounded to eight bits in blocks of 32 inputs, and as they came. Memory holds a multiple of 16 tokens.
struct Activations {
  const float* values;  // (tokens) rows `value_stride` floats apart
  std::int64_t value_stride;
  std::int64_t inputs;
  const std::int8_t* quants;  // (tokens, inputs)
  Panel panels;               // of all tokens, panel after panel

  // That of a token, which becomes its first one.
  Panel panel(std::int64_t token) const {
    const std::int64_t at = token / kPanel * kPanel * (inputs / kBlock) + token % kPanel;
    return {panels.scales + at, panels.scaled_sums + at,
            panels.sums + token / kPanel * kPanel * (inputs / kBlock) * 2 + token % kPanel};
  }
};

// Where the blocks of one token go; scales and sums kPanel apart.
struct QuantisedRow {
  std::int8_t* quants;  // (inputs)
  float* scales;
  float* scaled_sums;
  std::int32_t* sums;
};

// tile[t][lane] = sixteen outputs of one group for tokens 0..count.
using Multiply = void (*)(const std::uint8_t* group, const Activations& x, std::int64_t count, float* tile);

// Queries that share keys and values: each (token, head) of one request and one kv head.
struct AttentionTile {
  static constexpr int kMaxQueries = 48;    // of the matrix unit
  static constexpr int kVectorQueries = 6;  // of the vector kernels

  int queries;
  const float* q[kMaxQueries];        // (head_dim)
  float* out[kMaxQueries];            // (head_dim)
  std::int64_t lengths[kMaxQueries];  // positions that each sees
  float scale;
  std::int64_t head_dim;         // a multiple of 16
  std::int64_t blocks_per_page;  // a page of the cache holds as many blocks of 16 positions
  const std::int32_t* pages;
  const char* keys;          // of this kv head: (head_dim, 16) per block of 16 positions
  const char* values;        // of this kv head: (16, head_dim) per block
  std::int64_t page_stride;  // bytes
  bool half;                 // F16, else F32
  float* scores;             // scratch, (queries, longest rounded up to 32)
  std::int64_t score_stride;

  // Where a block of sixteen positions lies, in keys or values.
  const char* block(const char* base, std::int64_t index) const {
    const std::int64_t page = blocks_per_page == 1 ? index : index / blocks_per_page;
    const std::int64_t inside = index - page * blocks_per_page;
    return base + pages[page] * page_stride + inside * kGroup * head_dim * (half ? 2 : 4);
  }

  std::int64_t longest() const {
    std::int64_t most = 0;
    for (int i = 0; i < queries; ++i) most = lengths[i] > most ? lengths[i] : most;
    return most;
  }
};

struct Kernels {
  const char* name;
  void (*quantise)(const float* x, std::int64_t inputs, const QuantisedRow& out);
  std::array<Multiply, static_cast<std::size_t>(Layout::count)> multiply;
  // out[t][lane] = tile + bias; the first `lanes` of sixteen. Bias may be null.
  void (*store)(const float* tile, std::int64_t count, const float* bias, float* out, std::int64_t stride, int lanes);
  // out = silu(gate) * up
  void (*store_gated)(const float* gate, const float* up, std::int64_t count, float* out, std::int64_t stride,
                      int lanes);
  // residual += x; out = residual / rms * weight. x or residual may be null.
  void (*norm)(const float* x, float* residual, const float* weight, float* out, std::int64_t size, float eps);
  void (*silu_mul)(const float* gate, const float* up, float* out, std::int64_t size);
  void (*attend)(const AttentionTile& tile);
  std::int64_t (*argmax)(const float* values, std::int64_t size);  // the first of the largest
  // sum of exp(value - largest)
  double (*sum_exp)(const float* values, std::int64_t size, float largest);
  void (*to_half)(const float* in, std::uint16_t* out, std::int64_t size);
};

// The best that this processor can run; the environment variable ENGINE_CPU_KERNELS names another one.
const Kernels& kernels();

}  // namespace cpu::fast

// Products of packed weights. Threads share groups of sixteen outputs; a group meets every token of a chunk, whose
// eight-bit form stays in the second-level cache.
#include <algorithm>

#include "device.h"
#include "fast/amx.h"
#include "fast/kernels.h"
#include "fast/ops.h"
#include "vt/counters.h"

namespace cpu::fast {
namespace {

constexpr std::int64_t kChunk = 512;  // tokens
constexpr std::int64_t kManyTokens = 16;
constexpr std::int64_t kRunsPerThread = 8;

std::size_t aligned(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
}

// Rounds a chunk of tokens, shared among the threads where there are many.
Activations quantise(CpuQueue& queue, const vt::Tensor& x) {
  const std::int64_t inputs = x.cols();
  const std::int64_t rows = (x.rows() + kPanel - 1) / kPanel * kPanel;
  const std::int64_t blocks = inputs / kBlock;
  const std::size_t quant_bytes = aligned(rows * inputs);
  const std::size_t scale_bytes = aligned(rows * blocks * 4);
  char* memory = queue.activations.get<char>(quant_bytes + 2 * scale_bytes + aligned(rows * blocks * 8));
  auto* quants = reinterpret_cast<std::int8_t*>(memory);
  auto* scales = reinterpret_cast<float*>(memory + quant_bytes);
  auto* scaled_sums = reinterpret_cast<float*>(memory + quant_bytes + scale_bytes);
  auto* sums = reinterpret_cast<std::int32_t*>(memory + quant_bytes + 2 * scale_bytes);
  queue.pool.split(x.rows(), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t panel = row / kPanel * kPanel * blocks;
      kernels().quantise(x.row<const float>(row), inputs,
                         {.quants = quants + row * inputs,
                          .scales = scales + panel + row % kPanel,
                          .scaled_sums = scaled_sums + panel + row % kPanel,
                          .sums = sums + 2 * panel + row % kPanel});
    }
  });
  return {.values = x.as<const float>(),
          .value_stride = x.stride[0] / static_cast<std::int64_t>(sizeof(float)),
          .inputs = inputs,
          .quants = quants,
          .panels = {.scales = scales, .scaled_sums = scaled_sums, .sums = sums}};
}

Activations as_they_are(const vt::Tensor& x) {
  return {.values = x.as<const float>(),
          .value_stride = x.stride[0] / static_cast<std::int64_t>(sizeof(float)),
          .inputs = x.cols(),
          .quants = nullptr,
          .panels = {}};
}

Multiply kernel_for(Layout layout, std::int64_t tokens, std::int64_t inputs) {
  const auto index = static_cast<std::size_t>(layout);
  if (tokens >= kAmxTokens && inputs <= kAmxMaxInputs && amx_available() && kAmxMultiply[index]) {
    return kAmxMultiply[index];
  }
  return kernels().multiply[index];
}

// Calls `work(group, tile)` for every group; each thread has a tile of its own.
template <typename Work>
void each_group(CpuQueue& queue, std::int64_t groups, std::int64_t tokens, std::int64_t tiles, const Work& work) {
  const std::int64_t floats = tokens * kGroup * tiles;
  float* memory = queue.tiles.get<float>(static_cast<std::size_t>(floats * queue.pool.size()));
  // Few tokens: equal shares, each one stream through memory. Many: shares go to whoever is free.
  const std::int64_t runs = tokens < kManyTokens ? queue.pool.size() : queue.pool.size() * kRunsPerThread;
  std::atomic<std::int64_t> next{0};
  queue.pool.run([&](int thread, int) {
    float* tile = memory + floats * thread;
    const auto share = [&](std::int64_t run) {
      for (std::int64_t group = groups * run / runs; group < groups * (run + 1) / runs; ++group) work(group, tile);
    };
    if (tokens < kManyTokens) return share(thread);
    for (std::int64_t run = next.fetch_add(1); run < runs; run = next.fetch_add(1)) share(run);
  });
}

void multiply_chunk(CpuQueue& queue, const vt::MatmulArgs& args, const vt::Tensor& x, const vt::Tensor& out) {
  const vt::Tensor& weight = args.weight.tensor;
  const auto layout = static_cast<Layout>(args.weight.layout);
  const Activations activations = is_float(layout) ? as_they_are(x) : quantise(queue, x);
  const Multiply multiply = kernel_for(layout, x.rows(), x.cols());
  const std::int64_t bytes = group_bytes(layout, weight.cols());
  const std::int64_t stride = out.stride[0] / static_cast<std::int64_t>(sizeof(float));
  const auto* bias = args.bias.as<const float>();
  each_group(queue, groups_of(weight.rows()), x.rows(), 1, [&](std::int64_t group, float* tile) {
    const std::int64_t row = group * kGroup;
    multiply(weight.as<const std::uint8_t>() + group * bytes, activations, x.rows(), tile);
    kernels().store(tile, x.rows(), bias ? bias + row : nullptr, out.as<float>() + row, stride,
                    static_cast<int>(std::min<std::int64_t>(kGroup, weight.rows() - row)));
  });
}

void gated_chunk(CpuQueue& queue, const vt::MatmulSiluMulArgs& args, const vt::Tensor& x, const vt::Tensor& out) {
  const std::int64_t rows = args.gate.tensor.rows();
  const auto gate_layout = static_cast<Layout>(args.gate.layout);
  const auto up_layout = static_cast<Layout>(args.up.layout);
  const bool rounded = !is_float(gate_layout) || !is_float(up_layout);
  const Activations activations = rounded ? quantise(queue, x) : as_they_are(x);
  const auto* gates = args.gate.tensor.as<const std::uint8_t>();
  const auto* ups = args.up.tensor.as<const std::uint8_t>();
  const std::int64_t gate_bytes = group_bytes(gate_layout, x.cols());
  const std::int64_t up_bytes = group_bytes(up_layout, x.cols());
  const std::int64_t stride = out.stride[0] / static_cast<std::int64_t>(sizeof(float));
  const Multiply gate = kernel_for(gate_layout, x.rows(), x.cols());
  const Multiply up = kernel_for(up_layout, x.rows(), x.cols());
  each_group(queue, groups_of(rows), x.rows(), 2, [&](std::int64_t group, float* tile) {
    float* up_tile = tile + x.rows() * kGroup;
    gate(gates + group * gate_bytes, activations, x.rows(), tile);
    up(ups + group * up_bytes, activations, x.rows(), up_tile);
    kernels().store_gated(tile, up_tile, x.rows(), out.as<float>() + group * kGroup, stride,
                          static_cast<int>(std::min<std::int64_t>(kGroup, rows - group * kGroup)));
  });
}

}  // namespace

void matmul(vt::Queue* queue, const vt::MatmulArgs& args) {
  static vt::LaunchCounter counter("matmul");
  counter.add();
  for (std::int64_t first = 0; first < args.x.rows(); first += kChunk) {
    const std::int64_t count = std::min(kChunk, args.x.rows() - first);
    multiply_chunk(cpu_queue(queue), args, vt::slice_rows(args.x, first, count),
                   vt::slice_rows(args.out, first, count));
  }
}

void matmul_silu_mul(vt::Queue* queue, const vt::MatmulSiluMulArgs& args) {
  static vt::LaunchCounter counter("matmul_silu_mul");
  counter.add();
  for (std::int64_t first = 0; first < args.x.rows(); first += kChunk) {
    const std::int64_t count = std::min(kChunk, args.x.rows() - first);
    gated_chunk(cpu_queue(queue), args, vt::slice_rows(args.x, first, count), vt::slice_rows(args.out, first, count));
  }
}

}  // namespace cpu::fast

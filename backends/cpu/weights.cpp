// See weights.h.
#include "weights.h"

#include <cstring>

#include "device.h"
#include "memory.h"
#include "reference/dequantize.h"

namespace cpu {
namespace {

std::int64_t total_rows(std::span<const vt::Tensor> parts) {
  std::int64_t rows = 0;
  for (const vt::Tensor& part : parts) rows += part.rows();
  return rows;
}

vt::PreparedWeight allocate_weight(vt::DType dtype, std::int64_t rows, std::int64_t cols) {
  const std::size_t bytes = static_cast<std::size_t>(rows * vt::bytes_for(dtype, cols));
  const Allocation memory = allocate(bytes);
  return {.tensor = vt::make_tensor(memory.data, dtype, {rows, cols}),
          .layout = 0,
          .bytes = bytes,
          .huge_pages = memory.huge_pages};
}

vt::PreparedWeight dequantised(ThreadPool& pool, std::span<const vt::Tensor> parts) {
  const vt::PreparedWeight weight = allocate_weight(vt::DType::F32, total_rows(parts), parts[0].cols());
  std::int64_t first = 0;
  for (const vt::Tensor& part : parts) {
    pool.split(part.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        reference::dequantize_row(part.dtype, part.row<const char>(row), weight.tensor.row(first + row), part.cols());
      }
    });
    first += part.rows();
  }
  return weight;
}

vt::PreparedWeight copied(std::span<const vt::Tensor> parts) {
  const vt::PreparedWeight weight = allocate_weight(parts[0].dtype, total_rows(parts), parts[0].cols());
  std::int64_t first = 0;
  for (const vt::Tensor& part : parts) {
    std::memcpy(weight.tensor.row<char>(first), part.data, static_cast<std::size_t>(part.rows() * part.stride[0]));
    first += part.rows();
  }
  return weight;
}

}  // namespace

vt::PreparedWeight prepare_weight(vt::Device* device, std::span<const vt::Tensor> parts, vt::WeightUse use,
                                  vt::Precision precision) {
  if (use == vt::WeightUse::vector || precision == vt::Precision::reference) {
    return dequantised(static_cast<CpuDevice*>(device)->pool, parts);
  }
  return copied(parts);
}

void free_weight(vt::Device*, const vt::PreparedWeight& weight) {
  release(weight.tensor.data);
}

}  // namespace cpu

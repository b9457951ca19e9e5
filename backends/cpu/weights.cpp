// See weights.h.
#include "weights.h"

#include <cstring>
#include <vector>

#include "device.h"
#include "fast/pack.h"
#include "memory.h"
#include "reference/dequantize.h"

namespace cpu {
namespace {

std::int64_t total_rows(std::span<const vt::Tensor> parts) {
  std::int64_t rows = 0;
  for (const vt::Tensor& part : parts) rows += part.rows();
  return rows;
}

vt::PreparedWeight make_weight(Arena& arena, vt::DType dtype, std::int64_t rows, std::int64_t cols, fast::Layout layout,
                               std::size_t bytes) {
  const Allocation memory = arena.take(bytes);
  return {.tensor = vt::make_tensor(memory.data, dtype, {rows, cols}),
          .layout = static_cast<std::int32_t>(layout),
          .bytes = bytes,
          .huge_pages = memory.huge_pages};
}

std::size_t file_bytes(vt::DType dtype, std::int64_t rows, std::int64_t cols) {
  return static_cast<std::size_t>(rows * vt::bytes_for(dtype, cols));
}

vt::PreparedWeight dequantised(CpuDevice& device, std::span<const vt::Tensor> parts) {
  const std::int64_t rows = total_rows(parts);
  const std::int64_t cols = parts[0].cols();
  const vt::PreparedWeight weight = make_weight(device.weights, vt::DType::F32, rows, cols, fast::Layout::file,
                                                file_bytes(vt::DType::F32, rows, cols));
  std::int64_t first = 0;
  for (const vt::Tensor& part : parts) {
    device.pool.split(part.rows(), 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        reference::dequantize_row(part.dtype, part.row<const char>(row), weight.tensor.row(first + row), cols);
      }
    });
    first += part.rows();
  }
  return weight;
}

vt::PreparedWeight copied(CpuDevice& device, const vt::Tensor& part) {
  const std::size_t bytes = file_bytes(part.dtype, part.rows(), part.cols());
  const vt::PreparedWeight weight =
      make_weight(device.weights, part.dtype, part.rows(), part.cols(), fast::Layout::file, bytes);
  std::memcpy(weight.tensor.data, part.data, bytes);
  return weight;
}

// A group takes its rows from wherever they are; parts need not end where a group does.
void pack_across(std::span<const vt::Tensor> parts, std::int64_t first, std::uint8_t* group,
                 std::vector<std::uint8_t>& gathered) {
  for (const vt::Tensor& part : parts) {
    if (first >= part.rows()) {
      first -= part.rows();
      continue;
    }
    if (first + fast::kGroup <= part.rows() || &part == &parts.back()) return fast::pack_group(part, first, group);
    break;
  }
  const auto row_bytes = static_cast<std::size_t>(vt::bytes_for(parts[0].dtype, parts[0].cols()));
  gathered.resize(row_bytes * fast::kGroup);
  std::int64_t rows = 0;
  for (auto part = parts.begin(); part != parts.end() && rows < fast::kGroup; ++part) {
    for (; first < part->rows() && rows < fast::kGroup; ++first, ++rows) {
      std::memcpy(gathered.data() + static_cast<std::size_t>(rows) * row_bytes, part->row<const char>(first),
                  row_bytes);
    }
    first = first < part->rows() ? first : first - part->rows();
  }
  fast::pack_group(vt::make_tensor(gathered.data(), parts[0].dtype, {rows, parts[0].cols()}), 0, group);
}

vt::PreparedWeight packed(CpuDevice& device, std::span<const vt::Tensor> parts) {
  const std::int64_t rows = total_rows(parts);
  const std::int64_t cols = parts[0].cols();
  const fast::Layout layout = fast::layout_for(parts[0].dtype);
  const std::int64_t groups = fast::groups_of(rows);
  const std::int64_t group_bytes = fast::group_bytes(layout, cols);
  const vt::PreparedWeight weight =
      make_weight(device.weights, parts[0].dtype, rows, cols, layout, static_cast<std::size_t>(groups * group_bytes));
  auto* data = weight.tensor.as<std::uint8_t>();
  device.pool.split(groups, 4, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint8_t> gathered;
    for (std::int64_t group = begin; group < end; ++group) {
      pack_across(parts, group * fast::kGroup, data + group * group_bytes, gathered);
    }
  });
  return weight;
}

}  // namespace

vt::PreparedWeight prepare_weight(vt::Device* device, std::span<const vt::Tensor> parts, vt::WeightUse use,
                                  vt::Precision precision) {
  CpuDevice& owner = *static_cast<CpuDevice*>(device);
  vt::PreparedWeight weight;
  if (use == vt::WeightUse::vector || precision == vt::Precision::reference) {
    weight = dequantised(owner, parts);
  } else if (use == vt::WeightUse::embedding) {
    weight = copied(owner, parts[0]);
  } else {
    weight = packed(owner, parts);
  }
  for (const vt::Tensor& part : parts) {
    release_file_pages(part.data, file_bytes(part.dtype, part.rows(), part.cols()));
  }
  return weight;
}

void free_weight(vt::Device* device, const vt::PreparedWeight& weight) {
  static_cast<CpuDevice*>(device)->weights.give(weight.tensor.data);
}

}  // namespace cpu

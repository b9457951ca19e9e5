// Weights from the host's file formats into the planes of weight.h on the device.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gpu/kernels.h"
#include "gpu/planes.h"
#include "gpu/queue.h"
#include "gpu/repack.h"
#include "gpu/workspace.h"
#include "vendor.h"
#include "vt/error.h"
#include "vt/half.h"

namespace vt::gpu {
namespace {

// Device memory that is freed unless it is kept.
class DeviceBytes {
 public:
  DeviceBytes(Device* device, std::size_t bytes) : data_(allocate(device, bytes)) {}
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { vendor::release(data_); }
  void* data() const { return data_; }
  void* keep() { return std::exchange(data_, nullptr); }

 private:
  void* data_;
};

void upload(void* to, const void* from, std::size_t bytes) {
  vendor::copy_async(to, from, bytes, nullptr);
  vendor::synchronize(vendor::StreamHandle{});
}

std::int64_t total_rows(std::span<const Tensor> parts) {
  std::int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.rows();
  return rows;
}

float plain_value(const Tensor& part, std::int64_t row) {
  const auto* at = part.row<unsigned char>(row);
  if (part.dtype == DType::F32) {
    float value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return part.dtype == DType::BF16 ? bf16_to_float(bits) : f16_to_float(bits);
}

// (size, 1) parts in any plain type, as one F32 vector.
PreparedWeight prepare_vector(Device* device, std::span<const Tensor> parts) {
  std::vector<float> values;
  for (const Tensor& part : parts) {
    for (std::int64_t row = 0; row < part.rows(); ++row) values.push_back(plain_value(part, row));
  }
  const auto size = static_cast<std::int64_t>(values.size());
  DeviceBytes memory(device, values.size() * sizeof(float));
  upload(memory.data(), values.data(), values.size() * sizeof(float));
  return {.tensor = make_tensor(memory.keep(), DType::F32, {size}), .bytes = values.size() * sizeof(float)};
}

void upload_plain(unsigned char* to, const Tensor& part, std::int64_t first, std::int64_t padded_row) {
  const std::int64_t row_bytes = bytes_for(part.dtype, part.cols());
  if (padded_row == row_bytes && part.stride[0] == row_bytes) {
    return upload(to + first * row_bytes, part.data, static_cast<std::size_t>(part.rows() * row_bytes));
  }
  std::vector<unsigned char> rows(static_cast<std::size_t>(part.rows() * padded_row));
  for (std::int64_t row = 0; row < part.rows(); ++row) {
    std::memcpy(rows.data() + row * padded_row, part.row<char>(row), static_cast<std::size_t>(row_bytes));
  }
  upload(to + first * padded_row, rows.data(), rows.size());
}

void upload_quantised(unsigned char* to, std::span<const Tensor> parts, const PlaneOffsets& at) {
  std::vector<unsigned char> host(at.total);
  const HostPlanes planes{host.data(), host.data() + at.high, host.data() + at.scales, host.data() + at.super};
  std::int64_t first = 0;
  for (const Tensor& part : parts) {
    repack_rows(part, first, planes);
    first += part.rows();
  }
  upload(to, host.data(), host.size());
}

}  // namespace

PreparedWeight prepare_weight(Device* device, std::span<const Tensor> parts, WeightUse use, Precision) {
  vendor::set_device(static_cast<GpuDevice*>(device)->index);
  if (use == WeightUse::vector) return prepare_vector(device, parts);
  const DType dtype = parts[0].dtype;
  const std::int64_t rows = total_rows(parts), cols = parts[0].cols();
  if (plane_shape(dtype).quants == 0) throw Error("a GPU weight cannot be of type " + std::string(name(dtype)));
  const PlaneOffsets at = plane_offsets(dtype, rows, cols);
  DeviceBytes memory(device, at.total);
  auto* to = static_cast<unsigned char*>(memory.data());
  if (is_quantised(dtype)) {
    upload_quantised(to, parts, at);
  } else {
    const std::int64_t padded_row = (cols + kChunk - 1) / kChunk * plane_shape(dtype).quants;
    std::int64_t first = 0;
    for (const Tensor& part : parts) {
      upload_plain(to, part, first, padded_row);
      first += part.rows();
    }
  }
  return {.tensor = make_tensor(memory.keep(), dtype, {rows, cols}), .layout = 1, .bytes = at.total};
}

void free_weight(Device*, const PreparedWeight& weight) {
  vendor::release(weight.tensor.data);
}

}  // namespace vt::gpu

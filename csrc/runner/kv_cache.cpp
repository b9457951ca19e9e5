// See kv_cache.h.
#include "runner/kv_cache.h"

#include <limits>
#include <string>

namespace runner {
namespace {

// Divides before it multiplies, so that absurd sizes don't wrap around.
std::size_t checked_product(std::size_t a, std::size_t b) {
  if (a != 0 && b > std::numeric_limits<std::size_t>::max() / 2 / a) {
    throw vt::OutOfMemory("a KV cache of " + std::to_string(b) + " tokens is larger than any memory");
  }
  return a * b;
}

}  // namespace

KvCache::KvCache(const vt::OpenDevice& device, const model::Config& config, vt::DType dtype, std::int64_t num_blocks,
                 std::int64_t block_size) {
  const auto vector = static_cast<std::size_t>(vt::bytes_for(dtype, config.head_dim));
  bytes_per_token_ = checked_product(static_cast<std::size_t>(2 * config.num_layers * config.num_kv_heads), vector);
  const auto tokens = static_cast<std::size_t>(num_blocks * block_size);
  bytes_ = checked_product(bytes_per_token_, tokens);
  try {
    memory_ = vt::Buffer(device, bytes_);
  } catch (const std::bad_alloc&) {
    const std::size_t free = device.platform().device_info(device.index()).free_memory;
    throw vt::OutOfMemory("a KV cache of " + std::to_string(tokens) + " tokens takes " + std::to_string(bytes_) +
                          " bytes, " + std::to_string(free) + " are free: at most " +
                          std::to_string(free / bytes_per_token_ / static_cast<std::size_t>(block_size) *
                                         static_cast<std::size_t>(block_size)) +
                          " tokens fit");
  }
  const std::size_t half = bytes_ / static_cast<std::size_t>(2 * config.num_layers);
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    char* keys = memory_.as<char>() + static_cast<std::size_t>(2 * layer) * half;
    const auto view = [&](char* data) {
      return vt::make_tensor(data, dtype, {num_blocks, config.num_kv_heads, block_size, config.head_dim});
    };
    layers_.push_back({.keys = view(keys), .values = view(keys + half)});
  }
}

}  // namespace runner

// The paged cache: keys and values of every layer in blocks of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"
#include "vt/handles.h"

namespace runner {

class KvCache {
 public:
  KvCache() = default;
  // Throws OutOfMemory saying how many tokens would fit.
  KvCache(const vt::OpenDevice& device, const model::Config& config, vt::DType dtype, std::int64_t num_blocks,
          std::int64_t block_size);

  std::span<const vt::KvCache> layers() const { return layers_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t bytes_per_token() const { return bytes_per_token_; }

 private:
  vt::Buffer memory_;
  std::vector<vt::KvCache> layers_;
  std::size_t bytes_ = 0;
  std::size_t bytes_per_token_ = 0;
};

}  // namespace runner

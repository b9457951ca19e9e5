// See staging.h.
#include "runner/staging.h"

#include <algorithm>

namespace runner {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kFirstSize = 4096;

}  // namespace

std::size_t Staging::reserve(std::size_t bytes) {
  const std::size_t offset = used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (used_ > host_.bytes()) {
    vt::HostBuffer larger(*device_, std::max({kFirstSize, used_, 2 * host_.bytes()}));
    if (offset > 0) std::memcpy(larger.data(), host_.data(), offset);
    host_ = std::move(larger);
  }
  return offset;
}

void Staging::upload(vt::Queue* queue, vt::Buffer& target) const {
  if (used_ == 0) return;
  ensure(*device_, queue, target, used_);
  device_->platform().copy(queue, target.data(), host_.data(), used_);
}

void ensure(const vt::OpenDevice& device, vt::Queue* queue, vt::Buffer& buffer, std::size_t bytes) {
  if (bytes <= buffer.bytes()) return;
  device.platform().synchronise(queue);
  buffer = vt::Buffer(device, std::max({kFirstSize, bytes, buffer.bytes() + buffer.bytes() / 2}));
}

}  // namespace runner

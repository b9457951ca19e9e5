// Many small host arrays that travel to the device in one copy.
#pragma once

#include <cstring>
#include <vector>

#include "vt/handles.h"

namespace runner {

class Staging {
 public:
  explicit Staging(const vt::OpenDevice& device) : device_(&device) {}

  void clear() { used_ = 0; }

  // Returns the array's offset in the device's copy.
  template <typename T>
  std::size_t add(const std::vector<T>& values) {
    const std::size_t offset = reserve(values.size() * sizeof(T));
    if (!values.empty())
      std::memcpy(static_cast<char*>(host_.data()) + offset, values.data(), values.size() * sizeof(T));
    return offset;
  }

  // Grows `target` if it must, after what is queued is done with it.
  void upload(vt::Queue* queue, vt::Buffer& target) const;

 private:
  std::size_t reserve(std::size_t bytes);

  const vt::OpenDevice* device_;
  vt::HostBuffer host_;
  std::size_t used_ = 0;
};

template <typename T>
T* at(const vt::Buffer& buffer, std::size_t offset) {
  return reinterpret_cast<T*>(buffer.as<char>() + offset);
}

// A buffer of at least `bytes`; what it held is lost when it grows.
void ensure(const vt::OpenDevice& device, vt::Queue* queue, vt::Buffer& buffer, std::size_t bytes);

}  // namespace runner

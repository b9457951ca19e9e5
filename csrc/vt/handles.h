// RAII for what a platform hands out.
#pragma once

#include <memory>
#include <utility>

#include "vt/backend.h"

namespace vt {

// A device that was opened, with its backend.
class OpenDevice {
 public:
  OpenDevice(const Backend& backend, int index, const DeviceOptions& options)
      : backend_(&backend), index_(index), device_(backend.platform.open(index, options)) {}
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  ~OpenDevice() { backend_->platform.close(device_); }

  const Backend& backend() const { return *backend_; }
  const Platform& platform() const { return backend_->platform; }
  Device* get() const { return device_; }
  int index() const { return index_; }

 private:
  const Backend* backend_;
  int index_;
  Device* device_;
};

// Device memory. Must not outlive its device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const OpenDevice& device, std::size_t bytes)
      : device_(&device), data_(device.platform().alloc(device.get(), bytes)), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_) device_->platform().free(device_->get(), data_);
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  const OpenDevice* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Host memory that the device copies from and to quickly.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(const OpenDevice& device, std::size_t bytes) : device_(&device), bytes_(bytes) {
    const Platform& platform = device.platform();
    data_ = platform.alloc_host ? platform.alloc_host(device.get(), bytes) : ::operator new(bytes);
  }
  HostBuffer(HostBuffer&& other) noexcept { swap(other); }
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~HostBuffer() {
    if (!data_) return;
    if (device_->platform().alloc_host) {
      device_->platform().free_host(device_->get(), data_);
    } else {
      ::operator delete(data_);
    }
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(HostBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  const OpenDevice* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

template <typename T, void (*Platform::*Destroy)(T*)>
class Handle {
 public:
  Handle() = default;
  Handle(const OpenDevice& device, T* handle) : device_(&device), handle_(handle) {}
  Handle(Handle&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_) (device_->platform().*Destroy)(handle_);
  }

  T* get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  const OpenDevice* device_ = nullptr;
  T* handle_ = nullptr;
};

using QueueHandle = Handle<Queue, &Platform::destroy_queue>;
using EventHandle = Handle<Event, &Platform::destroy_event>;
using GraphHandle = Handle<Graph, &Platform::destroy_graph>;

inline QueueHandle make_queue(const OpenDevice& device) {
  return {device, device.platform().create_queue(device.get())};
}
inline EventHandle make_event(const OpenDevice& device) {
  return {device, device.platform().create_event(device.get())};
}

}  // namespace vt

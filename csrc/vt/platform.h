// What a device is and how memory, queues, events and graphs behave on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "vt/tensor.h"

namespace vt {

// Bases of what a backend defines itself (`struct CpuDevice : vt::Device`) and casts back to with static_cast: two
// backends in one binary must not define one name twice.
struct Device {};
struct Queue {};
struct Event {};
struct Graph {};

// reference: float32 weights and float32 everywhere. fast: weights as the file has them or repacked, best kernels.
enum class Precision : std::uint8_t { reference, fast };

struct Capabilities {
  // Ops return before they ran, and the sampler's output may stay on the device while the next step is launched. The
  // backend then has `combine`, `scatter_last_sampled` and `apply_last_sampled_ops`.
  bool supports_async_sampled_token_readback = false;
  bool graph_capture = false;
  bool batch_invariant = false;  // without asking for it
  bool unified_memory = false;   // the host may read and write device memory
};

struct DeviceInfo {
  std::string name;
  std::string arch;
  std::string driver;
  std::size_t total_memory = 0;
  std::size_t free_memory = 0;
  Capabilities capabilities;
};

struct DeviceOptions {
  int threads = 0;  // where the device is the host: 0 is one per core that may be used
};

// A weight in the form in which the backend's kernels want it. Memory belongs to the device until `free_weight`.
struct PreparedWeight {
  Tensor tensor;            // (outputs, inputs) or (size); dtype is what the kernels read
  std::int32_t layout = 0;  // 0: rows as in the file; other numbers are the backend's own
  std::size_t bytes = 0;
  bool huge_pages = false;
};

enum class WeightUse : std::uint8_t {
  vector,     // norm weights, biases, frequencies: always F32 on the device
  matmul,     // only multiplied with
  embedding,  // only looked up
  tied,       // looked up and multiplied with (the output head shares the embedding)
};

struct Platform {
  int (*device_count)();
  DeviceInfo (*device_info)(int index);

  // Throws Error if the device cannot be used (no device, code for another architecture in the binary).
  Device* (*open)(int index, const DeviceOptions& options);
  void (*close)(Device*);
  int (*threads)(Device*);  // host threads that compute; 0 where the device is not the host

  // Type of activations (all but residual stream, logits and sampling, which are F32) and, by default, of the KV cache,
  // for a model whose matrices are stored as `weights`.
  DType (*activation_dtype)(Device*, Precision, DType weights);
  DType (*kv_dtype)(Device*, Precision, DType weights);

  // Throw OutOfMemory. Memory is not initialised. Aligned to 64 bytes at least.
  void* (*alloc)(Device*, std::size_t bytes);
  void (*free)(Device*, void* memory);
  // Host memory that the device can copy from and to without a detour (pinned); may be null: then plain memory is used.
  void* (*alloc_host)(Device*, std::size_t bytes) = nullptr;
  void (*free_host)(Device*, void* memory) = nullptr;

  // `parts` are host tensors in a file's format with the same `cols` and type, stacked by rows into one weight; a
  // vector is (size, 1) here. The host memory is not needed after the call and may have any alignment. Throws Error
  // naming a type that the backend cannot compute with.
  PreparedWeight (*prepare_weight)(Device*, std::span<const Tensor> parts, WeightUse, Precision);
  void (*free_weight)(Device*, const PreparedWeight&);

  Queue* (*create_queue)(Device*);
  void (*destroy_queue)(Queue*);
  // In the order of the queue. Any mix of device memory and host memory from alloc_host; other host memory may make
  // the call wait. Source and target may not overlap.
  void (*copy)(Queue*, void* to, const void* from, std::size_t bytes);
  void (*zero)(Queue*, void* memory, std::size_t bytes);
  void (*synchronise)(Queue*);  // throws Error with what went wrong on the device

  Event* (*create_event)(Device*);
  void (*destroy_event)(Event*);
  void (*record)(Queue*, Event*);
  void (*wait)(Queue*, Event*);  // later work of the queue waits for the event
  bool (*done)(Event*);
  void (*synchronise_event)(Event*);  // the calling thread waits; throws as `synchronise`

  // Only with the capability graph_capture. Between begin and end the queue's ops are recorded, not run.
  void (*begin_capture)(Queue*) = nullptr;
  Graph* (*end_capture)(Queue*) = nullptr;
  void (*launch_graph)(Queue*, Graph*) = nullptr;
  void (*destroy_graph)(Graph*) = nullptr;
};

}  // namespace vt

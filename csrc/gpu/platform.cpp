// See platform.h.
#include "gpu/platform.h"

#include <string>

#include "gpu/kernels.h"
#include "gpu/probe.h"
#include "gpu/queue.h"
#include "gpu/workspace.h"
#include "vendor.h"
#include "vt/error.h"

namespace vt::gpu {
namespace {

std::string count_text(int devices) {
  return devices == 1 ? "there is one device" : "there are " + std::to_string(devices) + " devices";
}

void refuse_index(int index) {
  const int devices = vendor::device_count();
  const std::string name = vendor::kBackendName;
  if (devices == 0) {
    throw Error("no " + name +
                " device: the driver is missing or sees none; use --device cpu or a machine that has one");
  }
  if (index < 0 || index >= devices) {
    throw Error("no device '" + name + ":" + std::to_string(index) + "': " + count_text(devices));
  }
}

DeviceInfo device_info(int index) {
  refuse_index(index);
  vendor::set_device(index);
  const vendor::DeviceProperties found = vendor::properties(index);
  DeviceInfo info;
  info.name = found.name;
  info.arch = found.arch;
  info.driver = found.driver;
  vendor::memory_info(&info.free_memory, &info.total_memory);
  info.capabilities = {.supports_async_sampled_token_readback = true,
                       .graph_capture = true,
                       .batch_invariant = false,
                       .unified_memory = found.integrated};
  return info;
}

Device* open(int index, const DeviceOptions&) {
  refuse_index(index);
  vendor::set_device(index);
  auto* device = new GpuDevice;
  device->index = index;
  device->properties = vendor::properties(index);
  if (!probe()) {
    const std::string arch = device->properties.arch;
    delete device;
    throw Error("this build holds no code for " + arch + " (" + std::string(vendor::kBackendName) + ":" +
                std::to_string(index) + "); build it with " + vendor::kArchitectureOption + "=" + arch);
  }
  return device;
}

// BF16 models keep BF16 between kernels. Everything else stays F32, so that quantised weights lose nothing more.
DType activation_dtype(Device*, Precision precision, DType weights) {
  return precision == Precision::fast && weights == DType::BF16 ? DType::BF16 : DType::F32;
}

DType kv_dtype(Device*, Precision precision, DType weights) {
  if (precision == Precision::reference || weights == DType::F32) return DType::F32;
  return weights == DType::BF16 ? DType::BF16 : DType::F16;
}

}  // namespace

void* allocate(Device* device, std::size_t bytes) {
  vendor::set_device(static_cast<GpuDevice*>(device)->index);
  try {
    return vendor::allocate(bytes ? bytes : 1);
  } catch (const vendor::NoMemory&) {
    std::size_t free_bytes = 0, total_bytes = 0;
    vendor::memory_info(&free_bytes, &total_bytes);
    throw OutOfMemory("device memory: " + std::to_string(bytes >> 20) + " MiB asked for, " +
                      std::to_string(free_bytes >> 20) + " of " + std::to_string(total_bytes >> 20) + " MiB are free");
  }
}

namespace {

void* allocate_host(Device*, std::size_t bytes) {
  try {
    return vendor::allocate_pinned(bytes ? bytes : 1);
  } catch (const vendor::NoMemory&) {
    throw OutOfMemory("pinned host memory: " + std::to_string(bytes >> 20) + " MiB asked for");
  }
}

Queue* create_queue(Device* device) {
  auto* queue = new GpuQueue;
  queue->device = static_cast<GpuDevice*>(device);
  vendor::set_device(queue->device->index);
  queue->stream = vendor::make_stream();
  queue->arrivals = static_cast<unsigned int*>(allocate(device, kMaxArrivals * sizeof(unsigned int)));
  vendor::fill_async(queue->arrivals, 0, kMaxArrivals * sizeof(unsigned int), queue->stream);
  return queue;
}

void destroy_queue(Queue* queue) {
  GpuQueue* gone = &of(queue);
  try {
    vendor::synchronize(gone->stream);
  } catch (const std::exception&) {
    // The device is lost; what it held is freed all the same.
  }
  vendor::release(gone->workspace);
  vendor::release(gone->arrivals);
  vendor::destroy_stream(gone->stream);
  delete gone;
}

Event* create_event(Device*) {
  auto* event = new GpuEvent;
  event->handle = vendor::make_event();
  return event;
}

void destroy_event(Event* event) {
  vendor::destroy_event(static_cast<GpuEvent*>(event)->handle);
  delete static_cast<GpuEvent*>(event);
}

vendor::EventHandle handle(Event* event) {
  return static_cast<GpuEvent*>(event)->handle;
}

Graph* end_capture(Queue* queue) {
  auto* graph = new GpuGraph;
  try {
    graph->handle = vendor::end_capture(of(queue).stream);
  } catch (...) {
    delete graph;
    throw;
  }
  return graph;
}

void destroy_graph(Graph* graph) {
  vendor::destroy_graph(static_cast<GpuGraph*>(graph)->handle);
  delete static_cast<GpuGraph*>(graph);
}

}  // namespace

void* workspace(Queue* queue, std::size_t bytes) {
  GpuQueue& q = of(queue);
  if (bytes <= q.workspace_bytes) return q.workspace;
  vendor::synchronize(q.stream);
  vendor::release(q.workspace);
  q.workspace = nullptr;
  q.workspace_bytes = 0;
  q.workspace = allocate(q.device, bytes);
  q.workspace_bytes = bytes;
  return q.workspace;
}

Platform platform() {
  return {
      .device_count = vendor::device_count,
      .device_info = device_info,
      .open = open,
      .close = [](Device* device) { delete static_cast<GpuDevice*>(device); },
      .threads = [](Device*) { return 0; },
      .activation_dtype = activation_dtype,
      .kv_dtype = kv_dtype,
      .alloc = allocate,
      .free = [](Device*, void* memory) { vendor::release(memory); },
      .alloc_host = allocate_host,
      .free_host = [](Device*, void* memory) { vendor::release_pinned(memory); },
      .prepare_weight = prepare_weight,
      .free_weight = free_weight,
      .create_queue = create_queue,
      .destroy_queue = destroy_queue,
      .copy = [](Queue* queue, void* to, const void* from,
                 std::size_t bytes) { vendor::copy_async(to, from, bytes, of(queue).stream); },
      .zero = [](Queue* queue, void* memory,
                 std::size_t bytes) { vendor::fill_async(memory, 0, bytes, of(queue).stream); },
      .synchronise = [](Queue* queue) { vendor::synchronize(of(queue).stream); },
      .create_event = create_event,
      .destroy_event = destroy_event,
      .record = [](Queue* queue, Event* event) { vendor::record(handle(event), of(queue).stream); },
      .wait = [](Queue* queue, Event* event) { vendor::wait_event(of(queue).stream, handle(event)); },
      .done = [](Event* event) { return vendor::finished(handle(event)); },
      .synchronise_event = [](Event* event) { vendor::synchronize(handle(event)); },
      .begin_capture = [](Queue* queue) { vendor::begin_capture(of(queue).stream); },
      .end_capture = end_capture,
      .launch_graph = [](Queue* queue,
                         Graph* graph) { vendor::replay(static_cast<GpuGraph*>(graph)->handle, of(queue).stream); },
      .destroy_graph = destroy_graph,
  };
}

}  // namespace vt::gpu

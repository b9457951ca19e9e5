// Streams, events and host callbacks.

#include <chrono>
#include <set>

#include "runtime.h"

struct ihipEvent_t {
  unsigned flags = 0;
  greenlane::Stream* stream = nullptr;  // where it was recorded last
  uint64_t ticket = 0;                  // the place of the record in that stream
  bool recorded = false, done = true;
  greenlane::Graph* capture = nullptr;  // recorded while that graph was captured
  std::chrono::steady_clock::time_point time;
};

namespace greenlane {
namespace {

struct Streams {
  Stream null;
  std::set<Stream*> made;
};
Streams& streams() {
  static Streams& streams = *new Streams;
  return streams;
}

bool exists(const Stream* stream) {
  return streams().made.contains(const_cast<Stream*>(stream));
}

std::set<hipEvent_t>& events() {
  static auto& events = *new std::set<hipEvent_t>;
  return events;
}

hipError_t make_stream(hipStream_t* handle, unsigned flags, int priority) {
  if (!handle) return note(hipErrorInvalidValue);
  if (flags != hipStreamDefault && flags != hipStreamNonBlocking) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  auto* stream = new Stream;
  stream->flags = flags;
  stream->priority = priority;
  streams().made.insert(stream);
  *handle = (hipStream_t)stream;
  return hipSuccess;
}

}  // namespace

Stream* stream_of(hipStream_t handle) {
  if (!handle || handle == hipStreamPerThread || handle == (hipStream_t)1) return &streams().null;
  Stream* stream = (Stream*)handle;
  return exists(stream) ? stream : nullptr;
}

// The null stream waits for the blocking streams, and they for it.
hipError_t submit(Stream* stream, Operation operation) {
  if (stream->capture) return add_captured(stream->capture, std::move(operation));
  stream->submitted++;
  stream->waiting.push_back(std::move(operation));
  if (!settings().deferred) return drain(stream);
  const bool blocking = !(stream->flags & hipStreamNonBlocking);
  if (stream == &streams().null) {
    for (Stream* other : streams().made)
      if (!(other->flags & hipStreamNonBlocking))
        if (hipError_t status = drain(other); status != hipSuccess) return status;
  } else if (blocking && !streams().null.waiting.empty()) {
    return drain(&streams().null);
  }
  return hipSuccess;
}

hipError_t drain(Stream* stream, uint64_t until) {
  while (!stream->waiting.empty() && stream->completed < until) {
    Operation next = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    const hipError_t status = next();
    stream->completed++;
    if (status != hipSuccess) return status;
  }
  return hipSuccess;
}

hipError_t drain_all() {
  if (hipError_t status = drain(&streams().null); status != hipSuccess) return status;
  for (Stream* stream : streams().made)
    if (hipError_t status = drain(stream); status != hipSuccess) return status;
  return hipSuccess;
}

bool any_capture() {
  if (streams().null.capture) return true;
  for (Stream* stream : streams().made)
    if (stream->capture) return true;
  return false;
}

// Every stream that joined the capture of a graph leaves it.
void end_capture(Graph* graph) {
  for (Stream* stream : streams().made)
    if (stream->capture == graph) stream->capture = nullptr, stream->capture_origin = false;
  if (streams().null.capture == graph) streams().null.capture = nullptr;
}

static hipError_t wait_for(hipEvent_t event) {
  if (!event->recorded || event->done) return hipSuccess;
  return event->stream ? drain(event->stream, event->ticket) : hipSuccess;
}

static hipError_t record(hipEvent_t event, Stream* stream) {
  if (stream->capture) {
    event->capture = stream->capture;
    return hipSuccess;
  }
  event->stream = stream;
  event->ticket = stream->submitted + 1;
  event->recorded = true;
  event->done = false;
  event->capture = nullptr;
  const uint64_t ticket = event->ticket;
  return submit(stream, [event, ticket, stream] {
    if (!events().contains(event) || event->stream != stream || event->ticket != ticket)
      return hipSuccess;  // destroyed or recorded anew
    event->time = std::chrono::steady_clock::now();
    event->done = true;
    return hipSuccess;
  });
}

}  // namespace greenlane

using namespace greenlane;

extern "C" {

hipError_t hipStreamCreate(hipStream_t* stream) {
  return make_stream(stream, hipStreamDefault, 0);
}
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return make_stream(stream, flags, 0);
}
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  return make_stream(stream, flags, priority);
}
hipError_t hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t, const uint32_t*) {
  return make_stream(stream, hipStreamDefault, 0);
}

hipError_t hipStreamDestroy(hipStream_t handle) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !handle || stream == &streams().null) return note(hipErrorInvalidHandle);
  const hipError_t status = drain(stream);
  for (hipEvent_t event : events())
    if (event->stream == stream) event->stream = nullptr;
  streams().made.erase(stream);
  delete stream;
  return note(status);
}

hipError_t hipStreamSynchronize(hipStream_t handle) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream) return note(hipErrorInvalidHandle);
  if (stream->capture) return note(hipErrorStreamCaptureUnsupported);
  return note(stream == &streams().null ? drain_all() : drain(stream));
}

hipError_t hipStreamQuery(hipStream_t handle) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream) return note(hipErrorInvalidHandle);
  if (stream->capture) return note(hipErrorStreamCaptureUnsupported);
  return note(drain(stream));  // whoever polls must see progress
}

hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event, unsigned) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !events().contains(event)) return note(hipErrorInvalidHandle);
  if (event->capture) {  // a second stream joins the capture
    stream->capture = event->capture;
    return hipSuccess;
  }
  if (stream->capture) return hipSuccess;
  Stream* source = event->stream;
  const uint64_t ticket = event->ticket;
  if (!event->recorded || event->done || !source) return hipSuccess;
  return note(submit(stream, [source, ticket] {
    return exists(source) || source == &streams().null ? drain(source, ticket) : hipSuccess;
  }));
}

hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  Stream* stream = stream_of(handle);
  if (!stream) return note(hipErrorInvalidHandle);
  return *flags = stream->flags, hipSuccess;
}
hipError_t hipStreamGetPriority(hipStream_t handle, int* priority) {
  Stream* stream = stream_of(handle);
  if (!stream) return note(hipErrorInvalidHandle);
  return *priority = stream->priority, hipSuccess;
}
hipError_t hipStreamGetDevice(hipStream_t, hipDevice_t* device) {
  return *device = 0, hipSuccess;
}

hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void* data) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !function) return note(hipErrorInvalidValue);
  return note(submit(stream, [=] { return function(data), hipSuccess; }));
}
hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t function, void* data, unsigned) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !function) return note(hipErrorInvalidValue);
  return note(submit(stream, [=] { return function(handle, hipSuccess, data), hipSuccess; }));
}
hipError_t hipStreamWriteValue32(hipStream_t handle, void* pointer, uint32_t value, unsigned) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !pointer) return note(hipErrorInvalidValue);
  return note(submit(stream, [=] { return *(volatile uint32_t*)pointer = value, hipSuccess; }));
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  if (!event) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  *event = new ihipEvent_t;
  (*event)->flags = flags;
  events().insert(*event);
  return hipSuccess;
}
hipError_t hipEventCreate(hipEvent_t* event) {
  return hipEventCreateWithFlags(event, hipEventDefault);
}
hipError_t hipEventDestroy(hipEvent_t event) {
  Lock lock(runtime_mutex());
  if (!events().erase(event)) return note(hipErrorInvalidHandle);
  delete event;
  return hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !events().contains(event)) return note(hipErrorInvalidHandle);
  return note(record(event, stream));
}
hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t handle, unsigned) {
  return hipEventRecord(event, handle);
}
hipError_t hipEventSynchronize(hipEvent_t event) {
  Lock lock(runtime_mutex());
  if (!events().contains(event)) return note(hipErrorInvalidHandle);
  return note(wait_for(event));
}
hipError_t hipEventQuery(hipEvent_t event) {
  return hipEventSynchronize(event);
}
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  Lock lock(runtime_mutex());
  if (!milliseconds || !events().contains(start) || !events().contains(stop)) return note(hipErrorInvalidHandle);
  if (!start->recorded || !stop->recorded) return note(hipErrorInvalidHandle);
  if (!start->done || !stop->done) return hipErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return hipSuccess;
}

}  // extern "C"

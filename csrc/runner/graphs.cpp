// See graphs.h.
#include "runner/graphs.h"

#include <algorithm>

#include "vt/counters.h"

namespace runner {
namespace {

std::map<std::string, std::uint64_t> difference(const std::map<std::string, std::uint64_t>& after,
                                                const std::map<std::string, std::uint64_t>& before) {
  std::map<std::string, std::uint64_t> result;
  for (const auto& [kernel, count] : after) {
    const auto found = before.find(kernel);
    const std::uint64_t launches = count - (found == before.end() ? 0 : found->second);
    if (launches > 0) result[kernel] = launches;
  }
  return result;
}

}  // namespace

Graphs::Graphs(const vt::OpenDevice& device, std::int32_t max_num_seqs)
    : device_(device),
      max_num_seqs_(max_num_seqs),
      available_(device.platform().device_info(device.index()).capabilities.graph_capture) {}

std::int32_t Graphs::bucket(std::int32_t num_reqs) const {
  std::int32_t size = 1;
  while (size < num_reqs && size < 8) size *= 2;
  if (num_reqs > 8) size = (num_reqs + 7) / 8 * 8;
  return std::min(size, max_num_seqs_);
}

void Graphs::record(vt::Queue* queue, Entry& entry, const std::function<void()>& work) {
  const auto before = vt::launch_counts();
  device_.platform().begin_capture(queue);
  try {
    work();
  } catch (...) {
    const vt::GraphHandle unfinished(device_, device_.platform().end_capture(queue));
    throw;
  }
  entry.graph = vt::GraphHandle(device_, device_.platform().end_capture(queue));
  entry.launches = difference(vt::launch_counts(), before);
}

void Graphs::run(vt::Queue* queue, std::int32_t bucket, const std::function<void()>& work) {
  Entry& entry = entries_[bucket];
  if (!entry.seen) {
    entry.seen = true;
    return work();
  }
  // The first replay is what recording has counted already.
  if (entry.graph) {
    vt::add_launch_counts(entry.launches);
  } else {
    record(queue, entry, work);
  }
  device_.platform().launch_graph(queue, entry.graph.get());
}

}  // namespace runner

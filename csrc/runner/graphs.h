// Decode steps recorded once per batch size and replayed, where the platform can.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "vt/handles.h"

namespace runner {

class Graphs {
 public:
  Graphs(const vt::OpenDevice& device, std::int32_t max_num_seqs);

  bool available() const { return available_; }

  // The batch size that `num_reqs` is padded to.
  std::int32_t bucket(std::int32_t num_reqs) const;

  // Runs `work`, at first as it is, the second time recorded, from then on as a replay. It must use the same memory
  // each time.
  void run(vt::Queue* queue, std::int32_t bucket, const std::function<void()>& work);

 private:
  struct Entry {
    bool seen = false;  // libraries set themselves up on the first run, which must not be recorded
    vt::GraphHandle graph;
    std::map<std::string, std::uint64_t> launches;  // of one replay
  };

  void record(vt::Queue* queue, Entry& entry, const std::function<void()>& work);

  const vt::OpenDevice& device_;
  std::int32_t max_num_seqs_;
  bool available_;
  std::map<std::int32_t, Entry> entries_;
};

}  // namespace runner

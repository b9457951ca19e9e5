// The async device mirror: the last sampled token of every row stays on the device, so that the next step starts before
// the host has seen it. Only builds with a backend that supports it hold an implementation.
#pragma once

#include <memory>
#include <span>

#include "model/forward.h"
#include "vt/handles.h"

namespace runner {

// What `splice` reads of a step, on the device.
struct SpliceInputs {
  std::int32_t* input_ids;              // (T)
  const std::int32_t* idx_mapping;      // (num_reqs)
  const std::int32_t* query_start_loc;  // (num_reqs + 1)
  const std::int32_t* seq_lens;         // (num_reqs)
  const std::int32_t* prefill_len;      // (max_num_seqs)
  std::int32_t num_reqs;
};

class Mirror {
 public:
  virtual ~Mirror() = default;

  // A request entered or left the row; replayed on the device before the next step.
  virtual void set(std::int32_t row, std::int32_t token) = 0;
  virtual void replay(vt::Queue* queue) = 0;
  virtual void splice(vt::Queue* queue, const SpliceInputs& inputs) = 0;
  virtual void scatter(vt::Queue* queue, const std::int64_t* token_ids, const std::int32_t* idx_mapping,
                       std::int32_t count) = 0;
};

// Throws Error if the backend lacks one of the mirror's ops, or the build has no mirror.
std::unique_ptr<Mirror> make_mirror(const model::Model& model, std::int32_t max_num_seqs);

}  // namespace runner

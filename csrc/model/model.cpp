// Opens the device, checks that it has every op the model needs, loads the weights.
#include "model/model.h"

#include <array>
#include <string_view>

#include "model/loader.h"

namespace model {
namespace {

constexpr std::array<std::string_view, 11> kNeeded{
    "embedding",   "matmul", "rms_norm", "rope",         "silu_mul",          "copy_blocks",
    "gather_rows", "sample", "logprobs", "count_tokens", "logits_processors",
};

}  // namespace

Model::Model(const vt::Backend& backend, int index, const vt::DeviceOptions& options, const Config& config,
             HostTensors tensors, vt::Precision precision)
    : device_(backend, index, options),
      ops_(&backend.ops(device_.get(), precision)),
      config_(config),
      precision_(precision) {
  validate(config_);
  vt::require(backend, *ops_, kNeeded, "a " + config_.architecture + " model");
  Loader(*this, std::move(tensors)).load();
}

}  // namespace model

// Builds whose backends keep no tokens on the device hold no mirror.
#include "runner/mirror.h"

namespace runner {

std::unique_ptr<Mirror> make_mirror(const model::Model& model, std::int32_t) {
  throw vt::Error("the async device mirror is not in this build: backend '" +
                  std::string(model.device().backend().name) + "' does not keep sampled tokens on the device");
}

}  // namespace runner

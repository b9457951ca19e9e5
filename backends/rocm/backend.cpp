// The ROCm backend's table.
#include "gpu/make_backend.h"

namespace vt {

namespace {
constexpr AttentionBackend kAttention[] = {gpu::kPagedAttention};
}  // namespace

extern const Backend rocm_backend;
const Backend rocm_backend = gpu::make_backend("rocm", kAttention);

}  // namespace vt

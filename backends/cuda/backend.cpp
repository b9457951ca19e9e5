// The CUDA backend's table.
#include "gpu/make_backend.h"

namespace vt {

namespace {
constexpr AttentionBackend kAttention[] = {gpu::kPagedAttention};
}  // namespace

extern const Backend cuda_backend;
const Backend cuda_backend = gpu::make_backend("cuda", kAttention);

}  // namespace vt

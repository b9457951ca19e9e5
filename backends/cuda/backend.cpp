// The CUDA backend's table.
#include "attention.h"
#include "decode_step.h"
#include "gpu/make_backend.h"

namespace vt {

namespace {
constexpr AttentionBackend kAttention[] = {
    {
        .name = "flash",
        .refuses = gpu::cuda::flash_attention_refuses,
        .workspace_bytes = gpu::paged_attention_workspace,
        .kv_write = gpu::kv_write,
        .attention = gpu::cuda::flash_attention,
        .rope_kv_write = gpu::rope_kv_write,
    },
    gpu::kPagedAttention,
};

const OpTable& op_table(Device* device, Precision precision) {
  static const OpTable ops = [&] {
    OpTable table = gpu::op_table(device, precision);
    table.decode_step = gpu::cuda::decode_step;
    return table;
  }();
  return ops;
}
}  // namespace

extern const Backend cuda_backend;
const Backend cuda_backend = gpu::make_backend("cuda", kAttention, op_table);

}  // namespace vt

// out = x * weight^T for many rows of x on sm_90: a warp fills shared memory through the tensor memory accelerator,
// two warp groups multiply with wgmma. A block computes 128 rows by 128 outputs (with SiLU 64 gates and their 64 ups).

#include <cuda.h>

#include <mutex>

#include "gpu/launch.h"
#include "gpu/number.h"
#include "matrix.h"
#include "tensor_core.h"

namespace vt::gpu::cuda {
namespace {

constexpr int kRows = 128;
constexpr int kOutputs = 128;
constexpr int kDepth = 64;  // inputs per step: one row of a tile is 128 bytes
constexpr int kStages = 3;
constexpr int kGroups = 2;  // multiplying warp groups, 64 rows each
constexpr int kThreads = kGroups * 128 + 32;
constexpr int kInputBytes = kRows * kDepth * 2;
constexpr int kStageBytes = (kRows + kOutputs) * kDepth * 2;
constexpr unsigned kShared = kStages * kStageBytes + 1024;  // to start at a multiple of 1024

struct Parameters {
  void* out;
  std::int64_t out_stride;  // elements
  const float* bias;
  int rows;
  int outputs;
  int steps;
  bool out_is_float;
};

struct Maps {
  CUtensorMap x;
  CUtensorMap weight;
  CUtensorMap up;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void expect_bytes(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void wait(std::uint32_t barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni passed;\n"
      "bra.uni again;\n"
      "passed:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ inline void fetch_tile(std::uint32_t to, const CUtensorMap* map, int column, int row,
                                  std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(reinterpret_cast<std::uint64_t>(map)), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

// A tile of 128-byte rows in the 128-byte swizzle: eight rows are 1024 bytes apart.
__device__ inline std::uint64_t tile_descriptor(std::uint32_t address) {
  return static_cast<std::uint64_t>((address & 0x3ffffu) >> 4) | std::uint64_t{1} << 16 | std::uint64_t{64} << 32 |
         std::uint64_t{1} << 62;
}

// sums (64 x 128) += a (64 x 16) * b (128 x 16)^T.
__device__ inline void group_multiply_add(float (&d)[64], std::uint64_t a, std::uint64_t b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
      "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(accumulate));
}

__device__ inline void store_pair(const Parameters& p, int row, int output, float first, float second) {
  if (row >= p.rows || output >= p.outputs) return;
  if (p.bias) first += p.bias[output], second += p.bias[output + 1];
  const std::int64_t at = row * p.out_stride + output;
  if (p.out_is_float) {
    static_cast<float*>(p.out)[at] = first;
    static_cast<float*>(p.out)[at + 1] = second;
  } else if ((p.out_stride & 1) == 0) {
    *reinterpret_cast<std::uint32_t*>(static_cast<BFloat16*>(p.out) + at) = pack_bfloat16(first, second);
  } else {
    store(static_cast<BFloat16*>(p.out) + at, first);
    store(static_cast<BFloat16*>(p.out) + at + 1, second);
  }
}

#endif

template <bool kSilu>
__global__ void __launch_bounds__(kThreads, 2) wide_kernel(const __grid_constant__ Maps maps, Parameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char memory[];
  __shared__ alignas(8) std::uint64_t filled[kStages], drained[kStages];
  constexpr int kHalf = kOutputs / 2;  // weight rows that one copy brings
  const std::uint32_t base = (shared_address(memory) + 1023u) / 1024u * 1024u;
  const int first_row = blockIdx.x * kRows;
  const int first_output = blockIdx.y * (kSilu ? kHalf : kOutputs);
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      init_barrier(shared_address(&filled[stage]), 1);
      init_barrier(shared_address(&drained[stage]), kGroups);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  vendor::let_successor_start();
  vendor::wait_for_predecessor();

  if (warp == kGroups * 4) {
    if (threadIdx.x % 32 != 0) return;
    for (int step = 0; step < p.steps; ++step) {
      const int stage = step % kStages;
      if (step >= kStages) wait(shared_address(&drained[stage]), step / kStages % 2 ^ 1);
      const std::uint32_t barrier = shared_address(&filled[stage]), to = base + stage * kStageBytes;
      expect_bytes(barrier, kStageBytes);
      fetch_tile(to, &maps.x, step * kDepth, first_row, barrier);
      fetch_tile(to + kInputBytes, &maps.weight, step * kDepth, first_output, barrier);
      fetch_tile(to + kInputBytes + kHalf * kDepth * 2, kSilu ? &maps.up : &maps.weight, step * kDepth,
                 kSilu ? first_output : first_output + kHalf, barrier);
    }
    return;
  }

  const int group = warp / 4;
  float sums[64];
  for (int step = 0; step < p.steps; ++step) {
    const int stage = step % kStages;
    wait(shared_address(&filled[stage]), step / kStages % 2);
    const std::uint32_t inputs = base + stage * kStageBytes + group * 64 * kDepth * 2;
    const std::uint32_t weights = base + stage * kStageBytes + kInputBytes;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      group_multiply_add(sums, tile_descriptor(inputs + k * 32), tile_descriptor(weights + k * 32), step > 0 || k > 0);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    // The products of the step before have ended once only this step's are pending: its stage may be filled again.
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (step > 0 && threadIdx.x % 128 == 0) arrive(shared_address(&drained[(step - 1) % kStages]));
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

  const int lane = threadIdx.x % 32;
  const int row = first_row + group * 64 + warp % 4 * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < (kSilu ? 8 : 16); ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float first = sums[4 * j + 2 * half], second = sums[4 * j + 2 * half + 1];
      if (kSilu) {
        first = first / (1.0f + expf(-first)) * sums[32 + 4 * j + 2 * half];
        second = second / (1.0f + expf(-second)) * sums[32 + 4 * j + 2 * half + 1];
      }
      store_pair(p, row + 8 * half, first_output + 8 * j + lane % 4 * 2, first, second);
    }
  }
#endif
}

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeTiled encoder() {
  static const EncodeTiled found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
    return status == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(function)
                                                                          : nullptr;
  }();
  return found;
}

CUtensorMap map_of(const Tensor& matrix, unsigned rows_per_copy) {
  CUtensorMap map{};
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(matrix.cols()), static_cast<cuuint64_t>(matrix.rows())};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(matrix.stride[0])};
  const cuuint32_t box[2] = {kDepth, rows_per_copy};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult status = encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix.data, sizes, strides, box, steps,
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                    CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw Error("cuTensorMapEncodeTiled failed: " + std::to_string(status));
  return map;
}

template <bool kSilu>
void launch_wide(Queue* queue, const Matmul& m) {
  static LaunchCounter counter(kSilu ? "wide_matmul_silu_mul" : "wide_matmul");
  static const bool raised = (vendor::allow_shared(wide_kernel<kSilu>, kShared), true);
  (void)raised;
  Maps maps{map_of(m.x, kRows), map_of(m.weight, kOutputs / 2), {}};
  if (kSilu) maps.up = map_of(m.up, kOutputs / 2);
  Parameters p{};
  p.out = m.out.data;
  p.out_stride = m.out.stride[0] / block_shape(m.out.dtype).bytes;
  p.bias = m.bias;
  p.rows = static_cast<int>(m.x.rows());
  p.outputs = static_cast<int>(m.weight.rows());
  p.steps = static_cast<int>((m.weight.cols() + kDepth - 1) / kDepth);
  p.out_is_float = m.out.dtype == DType::F32;
  const Shape shape{dim3(blocks_for(p.rows, kRows), blocks_for(p.outputs, kSilu ? kOutputs / 2 : kOutputs)),
                    dim3(kThreads), kShared};
  launch(counter, queue, shape, wide_kernel<kSilu>, maps, p);
}

}  // namespace

bool has_wide_matmul(Queue* queue) {
#ifdef VT_CUDA_SM_90A
  return of(queue).device->properties.arch == "sm_90" && encoder() != nullptr;
#else
  (void)queue;
  return false;
#endif
}

void wide_matmul(Queue* queue, const Matmul& m) {
  if (m.up.data) return launch_wide<true>(queue, m);
  launch_wide<false>(queue, m);
}

}  // namespace vt::gpu::cuda

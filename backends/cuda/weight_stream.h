// The weights of a whole decode step, streamed through shared memory without a pause: every warp keeps a ring of copies
// in flight that runs ahead across the ends of matrices and layers, also while the warp waits for activations.
#pragma once

#include <cstdint>

#include "gpu/number.h"
#include "gpu/tile.h"
#include "tensor_core.h"

namespace vt::gpu::cuda {

constexpr int kStreamWarps = 16;

// A BF16 matrix and how it is cut. A block has rows blockIdx.x, blockIdx.x + gridDim.x, ..; a row has `per_row` pieces
// of `length` chunks (eight inputs, 16 bytes); piece i of a block goes to warp i % kStreamWarps. As per_row divides
// kStreamWarps, a warp meets one piece of the inputs alone, which it keeps in registers.
struct StreamShape {
  int units, more;  // rows of a block; the first `more` blocks have one more
  int row_bytes;
  int per_row;
  int length;
  int step_bytes;  // from a piece of a warp to its next
};

// False where a row can't be cut into equal pieces of at most `most` chunks.
inline bool cut(StreamShape& shape, std::int64_t rows, std::int64_t cols, int most, int blocks) {
  const int chunks = static_cast<int>(cols / 8);
  int per_row = 1;
  while (per_row < kStreamWarps && chunks > per_row * most) per_row *= 2;
  if (cols % 8 != 0 || chunks % per_row != 0 || chunks > per_row * most) return false;
  shape.units = static_cast<int>(rows / blocks);
  shape.more = static_cast<int>(rows % blocks);
  shape.row_bytes = chunks * 16;
  shape.per_row = per_row;
  shape.length = chunks / per_row;
  shape.step_bytes = kStreamWarps / per_row * blocks * shape.row_bytes;
  return true;
}

// A block's part of a matrix.
struct StreamPart {
  const StreamShape* shape;
  const unsigned char* first_row;  // blockIdx.x
  int units;
};

// `Matrices` says what comes when: `matrices(i)` is the i-th part of the step, of `matrices.count()`.
template <typename Matrices, int kPieceChunks, int kDepth>
class WeightStream {
 public:
  static constexpr int kRingBytes = kStreamWarps * kDepth * kPieceChunks * 16;
  static_assert(kPieceChunks % 32 == 0);

  // `ring` of kRingBytes and `barriers` (kStreamWarps * kDepth) in shared memory. Starts copying.
  __device__ WeightStream(const Matrices& matrices, unsigned char* ring, std::uint64_t* barriers)
      : matrices_(matrices),
        warp_(threadIdx.x / 32),
        lane_(threadIdx.x % 32),
        ring_(reinterpret_cast<const uint4*>(ring) + warp_ * kDepth * kPieceChunks),
        barriers_(shared_address(barriers + warp_ * kDepth)),
        next_(warp_) {
#if __CUDA_ARCH__ >= 900
    if (lane_ == 0) {
      for (int i = 0; i < kDepth; ++i) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers_ + i * 8) : "memory");
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy_));
      ahead_.open(matrices_(0), warp_);
      for (int i = 0; i < kDepth; ++i) ask(i);
    }
    __syncwarp();
#endif
  }

  // partial[i] = product of the block's piece i of the next part, the `index`-th, with its piece of x.
  __device__ StreamPart multiply(int index, const uint4* x, float* partial) {
    const StreamPart part = matrices_(index);
    const int count = part.units * part.shape->per_row;
    uint4 inputs[kLaneChunks];
    int chunks[kLaneChunks];  // of a piece, this lane's; past its end the last one, times zero
    take_inputs(x + next_ % part.shape->per_row * part.shape->length, part.shape->length, inputs, chunks);
    float earlier = 0.0f;  // of the piece before, not yet added up over the lanes
    for (; next_ < count; next_ += kStreamWarps) {
      wait();
      uint4 weights[kLaneChunks];
#pragma unroll
      for (int k = 0; k < kLaneChunks; ++k) weights[k] = ring_[slot_ * kPieceChunks + chunks[k]];
      const float sum = tile_sum(earlier);
      if (lane_ == 0 && next_ >= kStreamWarps) partial[next_ - kStreamWarps] = sum;
      earlier = dot(weights, inputs);
      __syncwarp();
      if (lane_ == 0) ask(slot_);
      if (++slot_ == kDepth) slot_ = 0, parity_ ^= 1;
    }
    const float sum = tile_sum(earlier);
    if (lane_ == 0 && next_ >= kStreamWarps) partial[next_ - kStreamWarps] = sum;
    next_ -= count;
    return part;
  }

 private:
  static constexpr int kLaneChunks = kPieceChunks / 32;

  // The piece that a warp asks for next.
  struct Cursor {
    const unsigned char* at;
    int piece, count, bytes, step_bytes;

    __device__ void open(const StreamPart& part, int first) {
      const StreamShape& shape = *part.shape;
      const int unit = first / shape.per_row;
      bytes = shape.length * 16;
      step_bytes = shape.step_bytes;
      at = part.first_row + static_cast<std::int64_t>(unit) * gridDim.x * shape.row_bytes +
           (first - unit * shape.per_row) * bytes;
      piece = first;
      count = part.units * shape.per_row;
    }
  };

  __device__ void take_inputs(const uint4* x, int length, uint4 (&inputs)[kLaneChunks],
                              int (&chunks)[kLaneChunks]) const {
#pragma unroll
    for (int k = 0; k < kLaneChunks; ++k) {
      const int chunk = lane_ + 32 * k;
      chunks[k] = min(chunk, length - 1);
      inputs[k] = chunk < length ? x[chunk] : uint4{};
    }
  }

  __device__ float dot(const uint4 (&weights)[kLaneChunks], const uint4 (&inputs)[kLaneChunks]) const {
    float sums[4] = {};
#pragma unroll
    for (int k = 0; k < kLaneChunks; ++k) {
      float w[8], x[8];
      unpack(static_cast<const BFloat16*>(nullptr), weights[k], w);
      unpack(static_cast<const BFloat16*>(nullptr), inputs[k], x);
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i % 4] = fmaf(w[i], x[i], sums[i % 4]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  __device__ void ask(int slot) {
#if __CUDA_ARCH__ >= 900
    while (ahead_.piece >= ahead_.count) {
      if (index_ahead_ + 1 >= matrices_.count()) return;
      ahead_.open(matrices_(++index_ahead_), ahead_.piece - ahead_.count);
    }
    const std::uint32_t barrier = barriers_ + slot * 8, to = shared_address(ring_ + slot * kPieceChunks);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(ahead_.bytes) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(to),
        "l"(ahead_.at), "r"(ahead_.bytes), "r"(barrier), "l"(policy_)
        : "memory");
    ahead_.piece += kStreamWarps;
    ahead_.at += ahead_.step_bytes;
#endif
  }

  __device__ void wait() const {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra.uni passed;\n"
        "bra.uni again;\n"
        "passed:\n"
        "}\n" ::"r"(barriers_ + slot_ * 8),
        "r"(parity_)
        : "memory");
#endif
  }

  const Matrices& matrices_;
  int warp_, lane_;
  const uint4* ring_;
  std::uint32_t barriers_;
  std::uint64_t policy_ = 0;
  Cursor ahead_{};       // lane 0's alone
  int index_ahead_ = 0;  // the part that `ahead_` is in
  int next_;             // piece of the current part
  int slot_ = 0;
  int parity_ = 0;
};

}  // namespace vt::gpu::cuda

// A barrier over all blocks of a cooperative launch, in two halves: what needs no other block's results goes between.
#pragma once

namespace vt::gpu::cuda {

class GridBarrier {
 public:
  __device__ explicit GridBarrier(unsigned int* arrivals) : arrivals_(arrivals) {}

  // What the block wrote before is seen by every block after wait().
  __device__ void arrive() {
    __syncthreads();
    target_ += gridDim.x;
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals_) : "memory");
  }

  __device__ void wait() {
    if (threadIdx.x == 0) {
      unsigned int seen;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrivals_) : "memory");
      } while (seen < target_);
    }
    __syncthreads();
  }

 private:
  unsigned int* arrivals_;  // grows by the number of blocks each time
  unsigned int target_ = 0;
};

}  // namespace vt::gpu::cuda

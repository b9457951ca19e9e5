// Kernels that are wrong, one for each value of FAULT.

#include <hip/hip_runtime.h>

__global__ void lds_overrun(float* out) {
  __shared__ float shared[64];
  shared[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x == 63) shared[threadIdx.x + 1] = out[0];
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x];
}

__global__ void misaligned(char* bytes) {
  int* odd = reinterpret_cast<int*>(bytes + 2);
  atomicAdd(odd, 1);
}

__global__ void endless(volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void after_free(int* data) {
  data[threadIdx.x] = 1;
}

__global__ void trapping(int* data) {
  if (data[0] != 12345) __builtin_trap();
}

__global__ void wild(int* data) {
  data[1ll << 40] = 1;
}

int main() {
  void* memory;
  if (hipMalloc(&memory, 4096) != hipSuccess) return 2;
  hipMemset(memory, 0, 4096);
#if FAULT == 1
  lds_overrun<<<1, 64>>>((float*)memory);
#elif FAULT == 2
  misaligned<<<1, 1>>>((char*)memory);
#elif FAULT == 3
  endless<<<1, 32>>>((int*)memory);
#elif FAULT == 4
  hipFree(memory);
  after_free<<<1, 32>>>((int*)memory);
#elif FAULT == 5
  trapping<<<1, 32>>>((int*)memory);
#else
  wild<<<1, 32>>>((int*)memory);
#endif
  return hipDeviceSynchronize() == hipSuccess ? 0 : 1;
}

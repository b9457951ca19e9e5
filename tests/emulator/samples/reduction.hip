// Sum of an array: a block reduction in shared memory, then an atomic.

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

#ifndef FAULT_NO_BARRIER
#define BARRIER() __syncthreads()
#else
#define BARRIER() ((void)0)
#endif

constexpr int kThreads = 256;

__global__ void sum(const float* x, float* out, int n) {
  __shared__ float part[kThreads];
  float mine = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) mine += x[i];
  part[threadIdx.x] = mine;
  BARRIER();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    BARRIER();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

int main() {
  constexpr int n = 100003;
  std::vector<float> x(n);
  double expected = 0;
  for (int i = 0; i < n; i++) expected += x[i] = (i * 37 % 101) / 16.0f;
  float *device, *out, result = 0;
  if (hipMalloc(&device, n * sizeof(float)) != hipSuccess || hipMalloc(&out, sizeof(float)) != hipSuccess) return 2;
  hipMemcpy(device, x.data(), n * sizeof(float), hipMemcpyHostToDevice);
  hipMemset(out, 0, sizeof(float));
  sum<<<40, kThreads>>>(device, out, n);
  hipMemcpy(&result, out, sizeof(float), hipMemcpyDeviceToHost);
  std::printf("sum %.3f expected %.3f\n", result, expected);
  hipFree(device);
  hipFree(out);
  return std::fabs(result - expected) / expected < 1e-5 && hipGetLastError() == hipSuccess ? 0 : 1;
}

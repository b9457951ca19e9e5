// Inclusive prefix sum with shuffles: within a wave, over the waves of a block, over blocks.

#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

#ifdef FAULT_WARP_64
#define WIDTH 64
#else
#define WIDTH warpSize
#endif

constexpr int kThreads = 256;

__device__ int wave_scan(int value, int lane) {
  for (int step = 1; step < WIDTH; step *= 2) {
    const int other = __shfl(value, lane - step < 0 ? lane : lane - step, WIDTH);
    if (lane >= step) value += other;
  }
  return value;
}

__global__ void scan(const int* x, int* out, int* totals, int n) {
  __shared__ int waves[64];
  const int i = blockIdx.x * kThreads + threadIdx.x, lane = threadIdx.x % WIDTH, wave = threadIdx.x / WIDTH;
  int value = wave_scan(i < n ? x[i] : 0, lane);
  if (lane == WIDTH - 1) waves[wave] = value;
  __syncthreads();
  int before = 0;
  for (int w = 0; w < wave; w++) before += waves[w];
  value += before;
  if (i < n) out[i] = value;
  if (threadIdx.x == kThreads - 1) totals[blockIdx.x] = value;
}

__global__ void add(int* out, const int* totals, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  int before = 0;
  for (int b = 0; b < (int)blockIdx.x; b++) before += totals[b];
  if (i < n) out[i] += before;
}

int main() {
  constexpr int n = 10007, blocks = (n + kThreads - 1) / kThreads;
  std::vector<int> x(n), out(n);
  for (int i = 0; i < n; i++) x[i] = i * 31 % 17 - 5;
  int *dx, *dout, *totals;
  if (hipMalloc(&dx, n * 4) || hipMalloc(&dout, n * 4) || hipMalloc(&totals, blocks * 4)) return 2;
  hipMemcpy(dx, x.data(), n * 4, hipMemcpyHostToDevice);
  scan<<<blocks, kThreads>>>(dx, dout, totals, n);
  add<<<blocks, kThreads>>>(dout, totals, n);
  hipMemcpy(out.data(), dout, n * 4, hipMemcpyDeviceToHost);
  int sum = 0, wrong = 0;
  for (int i = 0; i < n; i++) wrong += out[i] != (sum += x[i]);
  std::printf("prefix sum: %d of %d wrong\n", wrong, n);
  return wrong ? 1 : 0;
}

// Histogram of bytes: atomics in shared memory, then in global memory.

#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

constexpr int kBins = 256;

__global__ void histogram(const unsigned char* data, unsigned* bins, int n) {
  __shared__ unsigned local[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

int main() {
  constexpr int n = 200001;
  std::vector<unsigned char> data(n);
  std::vector<unsigned> expected(kBins), result(kBins);
  unsigned state = 1;
  for (auto& byte : data) {
    state = state * 1664525 + 1013904223;
    byte = state >> 24;
    expected[byte]++;
  }
  unsigned char* device;
  unsigned* bins;
  if (hipMalloc(&device, n) != hipSuccess || hipMalloc(&bins, kBins * 4) != hipSuccess) return 2;
  hipMemcpy(device, data.data(), n, hipMemcpyHostToDevice);
  hipMemset(bins, 0, kBins * 4);
  hipStream_t stream;
  hipStreamCreate(&stream);
  histogram<<<30, 192, 0, stream>>>(device, bins, n);
  hipMemcpyAsync(result.data(), bins, kBins * 4, hipMemcpyDeviceToHost, stream);
  hipStreamSynchronize(stream);
  int wrong = 0;
  for (int i = 0; i < kBins; i++) wrong += result[i] != expected[i];
  std::printf("histogram: %d of %d bins wrong\n", wrong, kBins);
  return wrong ? 1 : 0;
}

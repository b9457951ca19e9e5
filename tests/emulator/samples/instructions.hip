// Constructs that make the compiler use what other samples don't: calls, stack arrays, flat pointers, doubles, halves,
// 64-bit division, wide atomics, ballots, the accurate mathematical functions. Each result is compared with the host's.

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int kThreads = 256, kResults = 16;

__host__ __device__ __attribute__((noinline)) int collatz(int n) {
  int steps = 0;
  for (; n > 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
  return steps;
}

__host__ __device__ int stack_sort(int seed) {
  int values[8];
  for (int i = 0; i < 8; i++) values[i] = (seed * 7 + i * 13) % 31;
  for (int i = 1; i < 8; i++)
    for (int j = i; j > 0 && values[j - 1] > values[j]; j--) {
      const int held = values[j];
      values[j] = values[j - 1];
      values[j - 1] = held;
    }
  return values[seed % 8] * 100 + values[(seed + 3) % 8];
}

typedef int (*Function)(int);
__host__ __device__ __attribute__((noinline)) int twice(int x) {
  return 2 * x + 1;
}
__host__ __device__ __attribute__((noinline)) int square(int x) {
  return x * x - 3;
}

__host__ __device__ double exact(int i, int which) {
  const double x = (i - 100) * 0.37, y = (i % 13 + 1) * 1.25;
  const float a = (i - 128) * 1.7e-3f, b = (i % 7 + 1) * 0.3f;
  const int64_t big = (int64_t)(i + 1) * 0x123456789ll, small = i % 11 + 3;
  switch (which) {
    case 0:
      return collatz(i + 1);
    case 1:
      return stack_sort(i);
    case 2:
      return x / y;
    case 3:
      return sqrt(fabs(x));
    case 4:
      return a / b;
    case 5:
      return sqrtf(fabsf(a));
    case 6:
      return (double)(big / small);
    case 7:
      return (double)(-big % small);
    case 8:
      return (double)((uint64_t)big * 2654435761u >> 20);
    default: {
      Function f = i % 2 ? twice : square;
      return f(i);
    }
  }
}

__host__ __device__ double close(int i, int which) {
  const float x = (i - 100) * 0.21f;
  switch (which) {
    case 0:
      return expf(x * 0.3f);
    case 1:
      return logf(fabsf(x) + 0.01f);
    case 2:
      return sinf(x * 10);
    case 3:
      return powf(fabsf(x) + 0.1f, 1.7f);
    case 4:
      return tanhf(x);
    default:
      return exp(x * 0.2);
  }
}

__global__ void compute(double* out) {
  const int i = threadIdx.x;
  for (int which = 0; which < 10; which++) out[which * kThreads + i] = exact(i, which);
  for (int which = 0; which < 6; which++) out[(10 + which) * kThreads + i] = close(i, which);
}

__global__ void lanes(unsigned long long* total, int* votes, float* halves, double* sum, int* best) {
  const int i = threadIdx.x;
  __shared__ int shared[kThreads];
  int* place = i % 2 ? &shared[i] : &votes[kThreads + i];  // a pointer that may be either: flat
  shared[i] = 0;
  __syncthreads();
  *place = i * 3;
  __syncthreads();
  votes[i] = __popcll(__ballot(i % 3 == 0)) * 1000 + (__any(i == 70) ? 1 : 0) + (__all(i < 1000) ? 10 : 0);
  if (i % 2) votes[kThreads + i] = shared[i];
  atomicAdd(total, (unsigned long long)i << 30);
  atomicAdd(sum, 0.5 * i);
  atomicMax(best, i * 37 % 251);
  const __half2 h = __floats2half2_rn(i * 0.25f, -i * 0.5f), product = __hmul2(h, h), fused = __hfma2(product, h, h);
  halves[2 * i] = __low2float(fused);
  halves[2 * i + 1] = __high2float(fused);
}

template <class T>
static T* managed(size_t count) {
  T* memory;
  if (hipMallocManaged((void**)&memory, count * sizeof(T)) != hipSuccess) std::exit(2);
  for (size_t i = 0; i < count; i++) memory[i] = T(0);
  return memory;
}

int main() {
  int wrong = 0;
  double* out = managed<double>(kResults * kThreads);
  compute<<<1, kThreads>>>(out);
  if (hipDeviceSynchronize() != hipSuccess) return 2;
  for (int which = 0; which < kResults; which++)
    for (int i = 0; i < kThreads; i++) {
      const double got = out[which * kThreads + i], want = which < 10 ? exact(i, which) : close(i, which - 10);
      const bool right = which < 10 ? got == want : std::fabs(got - want) <= 4e-6 * std::fabs(want) + 4e-6;
      if (!right && wrong++ < 10) std::printf("result %d of thread %d: %.17g, not %.17g\n", which, i, got, want);
    }
  auto* total = managed<unsigned long long>(1);
  int *votes = managed<int>(2 * kThreads), *best = managed<int>(1);
  float* halves = managed<float>(2 * kThreads);
  double* sum = managed<double>(1);
  lanes<<<1, kThreads>>>(total, votes, halves, sum, best);
  if (hipDeviceSynchronize() != hipSuccess) return 2;
  hipDeviceProp_t properties;
  if (hipGetDeviceProperties(&properties, 0) != hipSuccess) return 2;
  const int warp = properties.warpSize;
  for (int i = 0; i < kThreads; i++) {
    const int first = i / warp * warp;
    int votes_wanted = 10 + (70 >= first && 70 < first + warp ? 1 : 0);
    for (int lane = first; lane < first + warp; lane++) votes_wanted += lane % 3 == 0 ? 1000 : 0;
    wrong += votes[i] != votes_wanted;
    wrong += votes[kThreads + i] != i * 3;
    for (int half = 0; half < 2; half++) {
      const _Float16 h = half ? -i * 0.5f : i * 0.25f, product = h * h;
      wrong += halves[2 * i + half] != (float)(_Float16)((double)product * (double)h + (double)h);
    }
  }
  wrong += *total != ((unsigned long long)kThreads * (kThreads - 1) / 2) << 30;
  wrong += *sum != 0.25 * kThreads * (kThreads - 1);
  wrong += *best != 250;
  std::printf("instructions: %d wrong\n", wrong);
  return wrong ? 1 : 0;
}

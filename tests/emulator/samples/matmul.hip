// Matrix multiply with tiles in shared memory, in float and in double, with sizes that are no multiple of the tile.

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

constexpr int kTile = 16;

template <class T>
__global__ void matmul(const T* a, const T* b, T* c, int m, int n, int k) {
  __shared__ T as[kTile][kTile], bs[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  T sum = 0;
  for (int t = 0; t < k; t += kTile) {
    as[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : T(0);
    bs[threadIdx.y][threadIdx.x] = t + threadIdx.y < k && col < n ? b[(t + threadIdx.y) * n + col] : T(0);
    __syncthreads();
    for (int i = 0; i < kTile; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

template <class T>
double worst(int m, int n, int k) {
  std::vector<T> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; i++) a[i] = T((i * 7 % 23) - 11) / 8;
  for (int i = 0; i < k * n; i++) b[i] = T((i * 5 % 19) - 9) / 8;
  T *da, *db, *dc;
  if (hipMalloc(&da, a.size() * sizeof(T)) || hipMalloc(&db, b.size() * sizeof(T)) ||
      hipMalloc(&dc, c.size() * sizeof(T)))
    return 1e9;
  hipMemcpy(da, a.data(), a.size() * sizeof(T), hipMemcpyHostToDevice);
  hipMemcpy(db, b.data(), b.size() * sizeof(T), hipMemcpyHostToDevice);
  matmul<T><<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), dim3(kTile, kTile)>>>(da, db, dc, m, n, k);
  hipMemcpy(c.data(), dc, c.size() * sizeof(T), hipMemcpyDeviceToHost);
  double error = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int t = 0; t < k; t++) sum += double(a[i * k + t]) * double(b[t * n + j]);
      error = std::fmax(error, std::fabs(sum - c[i * n + j]));
    }
  return error;
}

int main() {
  const double single = worst<float>(67, 45, 93), twice = worst<double>(33, 50, 70);
  std::printf("matmul: worst error %g in float, %g in double\n", single, twice);
  return single < 1e-4 && twice < 1e-12 ? 0 : 1;
}

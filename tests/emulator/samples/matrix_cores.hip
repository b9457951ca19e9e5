// One tile by the matrix instructions: WMMA on RDNA (16x16x16), MFMA on CDNA (16x16x16 and 32x32x8), laid out as the
// ISA guides say.

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

typedef _Float16 Half4 __attribute__((ext_vector_type(4)));
typedef _Float16 Half8 __attribute__((ext_vector_type(8)));
typedef _Float16 Half16 __attribute__((ext_vector_type(16)));
typedef float Float4 __attribute__((ext_vector_type(4)));
typedef float Float8 __attribute__((ext_vector_type(8)));
typedef float Float16 __attribute__((ext_vector_type(16)));

// a is (size, depth), b is (depth, size), c and d are (size, size), all row by row.
__global__ void tile_16(const _Float16* a, const _Float16* b, const float* c, float* d) {
  const int lane = threadIdx.x, column = lane % 16;
  (void)lane, (void)column;
#if defined(__GFX11__)
  Half16 left, right;
  Float8 sum;
  for (int k = 0; k < 16; k++) left[k] = a[column * 16 + k], right[k] = b[k * 16 + column];
  for (int r = 0; r < 8; r++) sum[r] = c[(2 * r + lane / 16) * 16 + column];
  sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(left, right, sum);
  for (int r = 0; r < 8; r++) d[(2 * r + lane / 16) * 16 + column] = sum[r];
#elif defined(__GFX12__)
  Half8 left, right;
  Float8 sum;
  for (int k = 0; k < 8; k++)
    left[k] = a[column * 16 + 8 * (lane / 16) + k], right[k] = b[(8 * (lane / 16) + k) * 16 + column];
  for (int r = 0; r < 8; r++) sum[r] = c[(r + 8 * (lane / 16)) * 16 + column];
  sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(left, right, sum);
  for (int r = 0; r < 8; r++) d[(r + 8 * (lane / 16)) * 16 + column] = sum[r];
#elif defined(__GFX9__)
  Half4 left, right;
  Float4 sum;
  for (int k = 0; k < 4; k++)
    left[k] = a[column * 16 + 4 * (lane / 16) + k], right[k] = b[(4 * (lane / 16) + k) * 16 + column];
  for (int r = 0; r < 4; r++) sum[r] = c[(4 * (lane / 16) + r) * 16 + column];
  sum = __builtin_amdgcn_mfma_f32_16x16x16f16(left, right, sum, 0, 0, 0);
  for (int r = 0; r < 4; r++) d[(4 * (lane / 16) + r) * 16 + column] = sum[r];
#endif
}

__global__ void tile_32(const _Float16* a, const _Float16* b, const float* c, float* d) {
#if defined(__GFX9__)
  const int lane = threadIdx.x, column = lane % 32;
  Half4 left, right;
  Float16 sum;
  for (int k = 0; k < 4; k++)
    left[k] = a[column * 8 + 4 * (lane / 32) + k], right[k] = b[(4 * (lane / 32) + k) * 32 + column];
  for (int r = 0; r < 16; r++) sum[r] = c[(8 * (r / 4) + 4 * (lane / 32) + r % 4) * 32 + column];
  sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left, right, sum, 0, 0, 0);
  for (int r = 0; r < 16; r++) d[(8 * (r / 4) + 4 * (lane / 32) + r % 4) * 32 + column] = sum[r];
#endif
}

static double worst(int size, int depth, int lanes,
                    void (*kernel)(const _Float16*, const _Float16*, const float*, float*)) {
  _Float16 *a, *b;
  float *c, *d;
  if (hipMallocManaged((void**)&a, size * depth * 2) || hipMallocManaged((void**)&b, size * depth * 2)) return 1e9;
  if (hipMallocManaged((void**)&c, size * size * 4) || hipMallocManaged((void**)&d, size * size * 4)) return 1e9;
  for (int i = 0; i < size * depth; i++) a[i] = (i * 7 % 23 - 11) / 8.0f, b[i] = (i * 5 % 19 - 9) / 8.0f;
  for (int i = 0; i < size * size; i++) c[i] = i % 11 - 5, d[i] = -1e9f;
  kernel<<<1, lanes>>>(a, b, c, d);
  if (hipDeviceSynchronize() != hipSuccess) return 1e9;
  double error = 0;
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++) {
      double sum = c[i * size + j];
      for (int k = 0; k < depth; k++) sum += (double)a[i * depth + k] * (double)b[k * size + j];
      error = std::fmax(error, std::fabs(sum - d[i * size + j]));
    }
  return error;
}

int main() {
  hipDeviceProp_t properties;
  if (hipGetDeviceProperties(&properties, 0) != hipSuccess) return 2;
  const int lanes = properties.warpSize;
  const double small = worst(16, 16, lanes, tile_16), large = lanes == 64 ? worst(32, 8, lanes, tile_32) : 0;
  std::printf("matrix cores: worst error %g, %g\n", small, large);
  return small < 1e-4 && large < 1e-4 ? 0 : 1;
}

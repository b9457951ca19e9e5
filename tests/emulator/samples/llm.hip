// The kinds of kernel that an LLM engine launches: RMS norm, rotary embedding, a 4-bit matrix-vector product,
// attention, argmax.

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

struct Block4 {  // 32 weights: w = scale * (q - 8)
  __half scale;
  uint8_t quants[16];
};

__device__ float wave_sum(float value) {
  for (int step = warpSize / 2; step > 0; step /= 2) value += __shfl_xor(value, step);
  return value;
}

__device__ float block_sum(float value, float* shared) {
  const int lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize, waves = blockDim.x / warpSize;
  value = wave_sum(value);
  if (lane == 0) shared[wave] = value;
  __syncthreads();
  value = wave_sum(lane < waves ? shared[lane] : 0.0f);
  __syncthreads();
  return value;
}

__global__ void rms_norm(const float* x, const float* weight, float* out, int size, float epsilon) {
  __shared__ float shared[32];
  const float* row = x + blockIdx.x * size;
  float squares = 0;
  for (int i = threadIdx.x; i < size; i += blockDim.x) squares += row[i] * row[i];
  const float scale = rsqrtf(block_sum(squares, shared) / size + epsilon);
  for (int i = threadIdx.x; i < size; i += blockDim.x) out[blockIdx.x * size + i] = row[i] * scale * weight[i];
}

__global__ void rope(float* x, const int* positions, int heads, int head_size, float base) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, half = head_size / 2;
  if (i >= heads * half) return;
  const int head = i / half, d = i % half;
  float sine, cosine;
  sincosf(positions[blockIdx.y] * powf(base, -2.0f * d / head_size), &sine, &cosine);
  float* pair = x + (blockIdx.y * heads + head) * head_size + d;
  const float a = pair[0], b = pair[half];
  pair[0] = a * cosine - b * sine;
  pair[half] = a * sine + b * cosine;
}

__global__ void matvec(const Block4* weights, const float* x, float* out, int rows, int columns) {
  const int row = blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
  if (row >= rows) return;
  const Block4* blocks = weights + row * (columns / 32);
  float sum = 0;
  for (int b = lane; b < columns / 32; b += warpSize) {
    float part = 0;
    for (int i = 0; i < 16; i++) {
      const int q = blocks[b].quants[i];
      part += ((q & 15) - 8) * x[b * 32 + i] + ((q >> 4) - 8) * x[b * 32 + 16 + i];
    }
    sum += __half2float(blocks[b].scale) * part;
  }
  sum = wave_sum(sum);
  if (lane == 0) out[row] = sum;
}

// One block a head; keys and values are halves; logits lie in dynamic shared memory.
__global__ void attention(const float* q, const __half* keys, const __half* values, float* out, int length,
                          int head_size, float scale) {
  extern __shared__ float logits[];
  __shared__ float shared[32];
  const int lane = threadIdx.x % warpSize, wave = threadIdx.x / warpSize, waves = blockDim.x / warpSize;
  const int heads = gridDim.x, head = blockIdx.x;
  float largest = -INFINITY;
  for (int t = wave; t < length; t += waves) {
    float dot = 0;
    for (int d = lane; d < head_size; d += warpSize)
      dot += q[head * head_size + d] * __half2float(keys[(t * heads + head) * head_size + d]);
    dot = wave_sum(dot) * scale;
    if (lane == 0) logits[t] = dot;
    largest = fmaxf(largest, dot);
  }
  if (lane == 0) shared[wave] = largest;
  __syncthreads();
  for (int w = 0; w < waves; w++) largest = fmaxf(largest, shared[w]);
  __syncthreads();
  float total = 0;
  for (int t = threadIdx.x; t < length; t += blockDim.x) total += logits[t] = __expf(logits[t] - largest);
  total = block_sum(total, shared);
  for (int d = threadIdx.x; d < head_size; d += blockDim.x) {
    float sum = 0;
    for (int t = 0; t < length; t++) sum += logits[t] * __half2float(values[(t * heads + head) * head_size + d]);
    out[head * head_size + d] = sum / total;
  }
}

__global__ void argmax(const float* x, int* best, int size) {
  __shared__ float value[256];
  __shared__ int index[256];
  float most = -INFINITY;
  int at = 0;
  for (int i = threadIdx.x; i < size; i += 256)
    if (x[i] > most) most = x[i], at = i;
  value[threadIdx.x] = most;
  index[threadIdx.x] = at;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const float other = value[threadIdx.x + half];
    const int place = index[threadIdx.x + half];
    if (other > value[threadIdx.x] || (other == value[threadIdx.x] && place < index[threadIdx.x]))
      value[threadIdx.x] = other, index[threadIdx.x] = place;
  }
  if (threadIdx.x == 0) *best = index[0];
}

static float noise(unsigned i) {
  return float((i * 2654435761u >> 8) % 20011) / 10005.0f - 1.0f;
}

template <class T>
struct Device {
  T* data = nullptr;
  size_t size;
  explicit Device(const std::vector<T>& host) : size(host.size()) {
    if (hipMalloc(&data, size * sizeof(T)) != hipSuccess) std::exit(2);
    hipMemcpy(data, host.data(), size * sizeof(T), hipMemcpyHostToDevice);
  }
  std::vector<T> host() const {
    std::vector<T> copy(size);
    hipMemcpy(copy.data(), data, size * sizeof(T), hipMemcpyDeviceToHost);
    return copy;
  }
  ~Device() { hipFree(data); }
};

static int failures = 0;
static void check(const char* name, double error, double allowed) {
  std::printf("%s: worst error %g\n", name, error);
  if (!(error <= allowed)) failures++;
}

static std::vector<float> noises(size_t count, unsigned seed) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; i++) x[i] = noise(i * 7 + seed);
  return x;
}

static void try_rms_norm() {
  const int rows = 3, size = 576;
  const auto x = noises(rows * size, 1), weight = noises(size, 2);
  Device<float> dx(x), dw(weight), out(std::vector<float>(rows * size));
  rms_norm<<<rows, 256>>>(dx.data, dw.data, out.data, size, 1e-5f);
  const auto got = out.host();
  double error = 0;
  for (int r = 0; r < rows; r++) {
    double squares = 0;
    for (int i = 0; i < size; i++) squares += double(x[r * size + i]) * x[r * size + i];
    for (int i = 0; i < size; i++)
      error = std::fmax(error,
                        std::fabs(got[r * size + i] - x[r * size + i] / std::sqrt(squares / size + 1e-5) * weight[i]));
  }
  check("rms_norm", error, 1e-5);
}

static void try_rope() {
  const int heads = 3, size = 64;
  const std::vector<int> positions = {0, 1, 77, 2000};
  const auto x = noises(positions.size() * heads * size, 3);
  Device<float> dx(x);
  Device<int> dp(positions);
  rope<<<dim3(2, positions.size()), 64>>>(dx.data, dp.data, heads, size, 10000.0f);
  const auto got = dx.host();
  double error = 0;
  for (size_t t = 0; t < positions.size(); t++)
    for (int h = 0; h < heads; h++)
      for (int d = 0; d < size / 2; d++) {
        const float* p = &x[(t * heads + h) * size + d];
        const double angle = positions[t] * std::pow(10000.0, -2.0 * d / size);
        error = std::fmax(error, std::fabs(got[(t * heads + h) * size + d] -
                                           (p[0] * std::cos(angle) - p[size / 2] * std::sin(angle))));
      }
  check("rope", error, 2e-3);
}

static void try_matvec() {
  const int rows = 65, columns = 1536;
  std::vector<Block4> weights(rows * columns / 32);
  std::vector<double> expected(rows);
  const auto x = noises(columns, 4);
  for (size_t b = 0; b < weights.size(); b++) {
    weights[b].scale = __float2half(0.01f + 0.001f * (b % 7));
    for (int i = 0; i < 16; i++) weights[b].quants[i] = (b * 31 + i * 17) * 2654435761u >> 24;
  }
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      const Block4& block = weights[(r * columns + c) / 32];
      const int q = c % 32 < 16 ? block.quants[c % 32] & 15 : block.quants[c % 32 - 16] >> 4;
      expected[r] += double(__half2float(block.scale)) * (q - 8) * x[c];
    }
  Device<Block4> dw(weights);
  Device<float> dx(x), out(std::vector<float>(rows, 0.0f));
  matvec<<<(rows + 3) / 4, 4 * 64>>>(dw.data, dx.data, out.data, rows, columns);
  const auto got = out.host();
  double error = 0;
  for (int r = 0; r < rows; r++) error = std::fmax(error, std::fabs(got[r] - expected[r]));
  check("matvec", error, 1e-3);
}

static void try_attention() {
  const int heads = 4, size = 64, length = 83;
  const auto q = noises(heads * size, 5), k = noises(length * heads * size, 6), v = noises(length * heads * size, 7);
  std::vector<__half> keys(k.size()), values(v.size());
  std::transform(k.begin(), k.end(), keys.begin(), [](float f) { return __float2half(f); });
  std::transform(v.begin(), v.end(), values.begin(), [](float f) { return __float2half(f); });
  Device<float> dq(q), out(std::vector<float>(heads * size));
  Device<__half> dk(keys), dv(values);
  attention<<<heads, 128, length * sizeof(float)>>>(dq.data, dk.data, dv.data, out.data, length, size, 0.125f);
  const auto got = out.host();
  double error = 0;
  for (int h = 0; h < heads; h++) {
    std::vector<double> p(length);
    double total = 0;
    for (int t = 0; t < length; t++) {
      for (int d = 0; d < size; d++) p[t] += q[h * size + d] * double(__half2float(keys[(t * heads + h) * size + d]));
      total += p[t] = std::exp(p[t] * 0.125);
    }
    for (int d = 0; d < size; d++) {
      double sum = 0;
      for (int t = 0; t < length; t++) sum += p[t] / total * __half2float(values[(t * heads + h) * size + d]);
      error = std::fmax(error, std::fabs(got[h * size + d] - sum));
    }
  }
  check("attention", error, 1e-4);
}

static void try_argmax() {
  auto x = noises(49152, 8);
  x[30000] = x[40000] = 5;
  Device<float> dx(x);
  Device<int> best(std::vector<int>{-1});
  argmax<<<1, 256>>>(dx.data, best.data, (int)x.size());
  check("argmax", std::abs(best.host()[0] - 30000), 0);
}

int main() {
  try_rms_norm();
  try_rope();
  try_matvec();
  try_attention();
  try_argmax();
  return failures || hipGetLastError() != hipSuccess ? 1 : 0;
}

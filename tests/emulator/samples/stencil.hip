// A five-point stencil over several steps, with constant memory, events, and a captured graph.

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

__constant__ float weights[2];

#ifdef FAULT_OUT_OF_BOUNDS
constexpr int kExtra = 1;
#else
constexpr int kExtra = 0;
#endif

__global__ void stencil(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int at = y * width + x;
  const bool edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
  const float value =
      edge ? in[at] : weights[0] * in[at] + weights[1] * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
  out[at + kExtra] = value;
}

int main() {
  constexpr int width = 77, height = 50, steps = 6;
  const float w[2] = {0.5f, 0.125f};
  std::vector<float> now(width * height), next(now), result(now);
  for (size_t i = 0; i < now.size(); i++) now[i] = float(i * 13 % 37);
  const size_t bytes = now.size() * sizeof(float);
  float *a, *b;
  if (hipMalloc(&a, bytes) || hipMalloc(&b, bytes)) return 2;
  hipMemcpyToSymbol(HIP_SYMBOL(weights), w, sizeof w);
  hipMemcpy(a, now.data(), bytes, hipMemcpyHostToDevice);
  hipStream_t stream;
  hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
  hipGraph_t graph;
  hipGraphExec_t exec;
  hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal);
  const dim3 block(16, 8), grid((width + 15) / 16, (height + 7) / 8);
  stencil<<<grid, block, 0, stream>>>(a, b, width, height);
  stencil<<<grid, block, 0, stream>>>(b, a, width, height);
  hipStreamEndCapture(stream, &graph);
  hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
  hipEvent_t start, stop;
  hipEventCreate(&start);
  hipEventCreate(&stop);
  hipEventRecord(start, stream);
  for (int step = 0; step < steps; step += 2) hipGraphLaunch(exec, stream);
  hipEventRecord(stop, stream);
  hipEventSynchronize(stop);
  float milliseconds = -1;
  hipEventElapsedTime(&milliseconds, start, stop);
  hipMemcpy(result.data(), a, bytes, hipMemcpyDeviceToHost);
  for (int step = 0; step < steps; step++) {
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        const int at = y * width + x;
        const bool edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
        next[at] =
            edge ? now[at] : w[0] * now[at] + w[1] * (now[at - 1] + now[at + 1] + now[at - width] + now[at + width]);
      }
    std::swap(now, next);
  }
  double error = 0;
  for (size_t i = 0; i < now.size(); i++) error = std::fmax(error, std::fabs(now[i] - result[i]));
  std::printf("stencil: worst error %g, %s\n", error, milliseconds >= 0 ? "timed" : "not timed");
  return error < 1e-4 && milliseconds >= 0 ? 0 : 1;
}

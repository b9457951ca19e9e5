// A decoder with nothing in it but the async device mirror: four requests, and a next token that only the last decides.
// Prints what an engine prints for the gates. FAULT 1: the mirror's kernels are never dispatched. FAULT 2: the scatter
// writes another request's row.

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#ifndef FAULT
#define FAULT 0
#endif

constexpr int kRequests = 4, kTokens = 8, kThreads = 64;

__global__ void decode_kernel(const int* input_ids, int* token_ids) {
  const int i = threadIdx.x;
  if (i < kRequests) token_ids[i] = (input_ids[i] * 1103515245u + 12345u) >> 9 & 1023;
}

__global__ void combine_kernel(const int* last_sampled, const int* rows, int* input_ids) {
  const int i = threadIdx.x;
  if (i < kRequests) input_ids[i] = last_sampled[rows[i]];
}

__global__ void scatter_last_sampled_kernel(const int* token_ids, const int* rows, int* last_sampled) {
  const int i = threadIdx.x;
  if (i < kRequests) last_sampled[rows[FAULT == 2 ? kRequests - 1 - i : i]] = token_ids[i];
}

int* on_device(const std::vector<int>& values) {
  int* memory = nullptr;
  hipMalloc(&memory, values.size() * sizeof(int));
  hipMemcpy(memory, values.data(), values.size() * sizeof(int), hipMemcpyHostToDevice);
  return memory;
}

struct Counts {
  int decode = 0, combine = 0, scatter = 0;
};

void print(const std::vector<int>& prompts, const std::vector<std::vector<int>>& tokens, const Counts& counts) {
  printf("{\"requests\": [");
  for (int i = 0; i < kRequests; i++) {
    printf("%s{\"prompt_token_ids\": [%d], \"token_ids\": [", i ? ", " : "", prompts[i]);
    for (int k = 0; k < kTokens; k++) printf("%s%d", k ? ", " : "", tokens[i][k]);
    printf("]}");
  }
  printf("], \"kernel_launches\": {\"decode\": %d", counts.decode);
  if (counts.combine) printf(", \"combine\": %d, \"scatter_last_sampled\": %d", counts.combine, counts.scatter);
  printf("}}\n");
}

int main(int argc, char** argv) {
  const bool mirror = FAULT != 1 && argc > 2 && strcmp(argv[2], "on") == 0;
  const std::vector<int> prompts{11, 22, 33, 44};
  int *input_ids = on_device(prompts), *rows = on_device({2, 0, 3, 1});
  int *token_ids = on_device({0, 0, 0, 0}), *last_sampled = on_device({0, 0, 0, 0});
  std::vector<std::vector<int>> tokens(kRequests);
  Counts counts;
  for (int step = 0; step < kTokens; step++) {
    if (mirror && step) combine_kernel<<<1, kThreads>>>(last_sampled, rows, input_ids), counts.combine++;
    decode_kernel<<<1, kThreads>>>(input_ids, token_ids), counts.decode++;
    if (mirror) scatter_last_sampled_kernel<<<1, kThreads>>>(token_ids, rows, last_sampled), counts.scatter++;
    int read[kRequests];
    hipMemcpy(read, token_ids, sizeof read, hipMemcpyDeviceToHost);
    for (int i = 0; i < kRequests; i++) tokens[i].push_back(read[i]);
    if (!mirror) hipMemcpy(input_ids, read, sizeof read, hipMemcpyHostToDevice);
  }
  print(prompts, tokens, counts);
  return hipDeviceSynchronize() == hipSuccess ? 0 : 1;
}

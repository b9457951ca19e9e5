// Times each kernel through the op table and prints it beside the ceilings of the same run: `kernels [threads]`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ceilings.h"
#include "vt/handles.h"

namespace {

constexpr int kRepeats = 5;
constexpr std::size_t kLarge = std::size_t{256} << 20;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(const std::function<void()>& work) {
  work();
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) times.push_back(seconds(work));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::thread> pool;
  for (int thread = 0; thread < threads; ++thread) pool.emplace_back(work, thread);
  for (std::thread& one : pool) one.join();
}

struct Ceilings {
  double bytes_per_second;
  double flops;
  double byte_ops;
};

Ceilings measure_ceilings(const vt::OpenDevice& device, int threads) {
  const vt::Buffer memory(device, kLarge);
  std::fill_n(memory.as<char>(), kLarge, '\1');
  volatile std::uint64_t kept = 0;
  const std::size_t share = kLarge / static_cast<std::size_t>(threads);
  const double reading = median([&] {
    on_threads(threads, [&](int thread) {
      kept = kept ^ read_all(memory.as<char>() + share * static_cast<std::size_t>(thread), share);
    });
  });
  std::vector<double> flops(static_cast<std::size_t>(threads)), bytes(static_cast<std::size_t>(threads));
  const auto run = [&](std::vector<double>& done, auto operation) {
    return median(
        [&] { on_threads(threads, [&](int thread) { done[static_cast<std::size_t>(thread)] = operation(); }); });
  };
  const double float_time = run(flops, [] {
    float sink = 0;
    return float_operations(5'000'000, &sink);
  });
  const double byte_time = run(bytes, [] {
    std::int32_t sink = 0;
    return byte_operations(5'000'000, &sink);
  });
  return {static_cast<double>(kLarge) / reading, threads * flops[0] / float_time, threads * bytes[0] / byte_time};
}

// One product; the weight is large enough that it comes from memory.
void bench_matmul(const vt::OpenDevice& device, vt::Queue* queue, vt::DType dtype, std::int64_t tokens,
                  const Ceilings& top) {
  constexpr std::int64_t kInputs = 1536;
  const std::int64_t outputs = tokens > 8 ? 1024 : 16384;
  std::vector<std::uint8_t> file(static_cast<std::size_t>(outputs * vt::bytes_for(dtype, kInputs)));
  for (std::size_t i = 0; i < file.size(); ++i)
    file[i] = static_cast<std::uint8_t>(2 + i * 37 % 59);  // finite and normal
  const vt::Tensor part = vt::make_tensor(file.data(), dtype, {outputs, kInputs});
  const vt::PreparedWeight weight =
      device.platform().prepare_weight(device.get(), {&part, 1}, vt::WeightUse::matmul, vt::Precision::fast);
  std::vector<float> x(static_cast<std::size_t>(tokens * kInputs), 0.5f);
  std::vector<float> out(static_cast<std::size_t>(tokens * outputs));
  const vt::OpTable& ops = device.backend().ops(device.get(), vt::Precision::fast);
  const double time = median([&] {
    ops.matmul(queue, {.x = vt::make_tensor(x.data(), vt::DType::F32, {tokens, kInputs}),
                       .weight = weight,
                       .bias = {},
                       .out = vt::make_tensor(out.data(), vt::DType::F32, {tokens, outputs})});
  });
  const double bytes = static_cast<double>(weight.bytes) / time;
  const double ops_per_second = 2.0 * static_cast<double>(tokens * outputs * kInputs) / time;
  const double ceiling = vt::is_quantised(dtype) ? top.byte_ops : top.flops;
  std::printf("matmul %-5s M=%-4lld %9.3f ms %7.1f GB/s (%3.0f %% of reading) %8.1f GOP/s (%3.0f %% of %s)\n",
              std::string(vt::name(dtype)).c_str(), static_cast<long long>(tokens), time * 1e3, bytes / 1e9,
              100 * bytes / top.bytes_per_second, ops_per_second / 1e9,
              ceiling > 0 ? 100 * ops_per_second / ceiling : 0,
              vt::is_quantised(dtype) ? "byte dot products" : "float multiply-adds");
  device.platform().free_weight(device.get(), weight);
}

void bench_logits(const vt::OpenDevice& device, vt::Queue* queue, const Ceilings& top) {
  constexpr std::int64_t kVocab = 151936;
  std::vector<float> logits(kVocab, 0.25f);
  std::int64_t id = 0;
  std::int32_t ids[2];
  float values[3];
  const vt::OpTable& ops = device.backend().ops(device.get(), vt::Precision::fast);
  const vt::Tensor view = vt::make_tensor(logits.data(), vt::DType::F32, {1, kVocab});
  const auto report = [&](const char* name, double time) {
    const double rate = static_cast<double>(kVocab) * 4 / time;
    std::printf("%-18s %9.3f ms %7.1f GB/s (%3.0f %% of reading)\n", name, time * 1e3, rate / 1e9,
                100 * rate / top.bytes_per_second);
  };
  vt::SampleArgs greedy{};
  greedy.logits = view;
  greedy.all_greedy = true;
  greedy.token_ids = &id;
  report("sample greedy", median([&] { ops.sample(queue, greedy); }));
  report("logprobs", median([&] {
           ops.logprobs(queue, {.logits = view,
                                .token_ids = &id,
                                .num_top = 2,
                                .logprobs = values,
                                .top_ids = ids,
                                .top_logprobs = values + 1});
         }));
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (threads < 1) return std::fprintf(stderr, "usage: kernels [threads]\n"), 2;
  const vt::OpenDevice device(vt::backend_named("cpu"), 0, {.threads = threads});
  const vt::QueueHandle queue = vt::make_queue(device);
  const Ceilings top = measure_ceilings(device, threads);
  std::printf("threads %d: reading %.1f GB/s, float multiply-adds %.0f GFLOP/s, byte dot products %.0f GOP/s\n",
              threads, top.bytes_per_second / 1e9, top.flops / 1e9, top.byte_ops / 1e9);
  using enum vt::DType;
  for (const vt::DType dtype : {Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, F16, BF16, F32}) {
    for (const std::int64_t tokens : {1, 8, 256}) bench_matmul(device, queue.get(), dtype, tokens, top);
  }
  bench_logits(device, queue.get(), top);
}

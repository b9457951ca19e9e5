// Picks the next token of each request; the rules stand at SampleArgs.

#include <algorithm>

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/tile.h"
#include "gpu/view.h"
#include "gpu/workspace.h"
#include "vt/philox.h"

namespace vt::gpu {
namespace {

constexpr int kThreads = 512;
constexpr int kMaxParts = 16;  // blocks that share a row of logits
constexpr int kNoToken = 0x7fffffff;

struct Greedy {
  Tensor logits;  // (N, vocab)
  std::int64_t* token_ids;
  Candidate* best;         // (N, parts)
  unsigned int* arrivals;  // (N)
};

__global__ void __launch_bounds__(kThreads) argmax_kernel(Greedy p) {
  __shared__ bool is_last;
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int line = blockIdx.x, parts = gridDim.y;
  const int vocab = static_cast<int>(p.logits.shape[1]);
  const float* logits = row_at(p.logits, line);
  Candidate best{-INFINITY, kNoToken};
  for (int id = blockIdx.y * kThreads + threadIdx.x; id < vocab; id += kThreads * parts) {
    const Candidate candidate{logits[id], id};
    if (ranks_before(candidate, best)) best = candidate;
  }
  best = block_best<kThreads>(best);
  if (threadIdx.x == 0) {
    p.best[line * parts + blockIdx.y] = best;
    __threadfence();
    is_last = atomicAdd(p.arrivals + line, 1u) == static_cast<unsigned int>(parts - 1);
    if (is_last) {
      __threadfence();
      p.arrivals[line] = 0u;
      const volatile Candidate* found = p.best + line * parts;
      for (int part = 0; part < parts; ++part) {
        const Candidate candidate{found[part].logit, found[part].id};
        if (part == 0 || ranks_before(candidate, best)) best = candidate;
      }
      p.token_ids[line] = best.id == kNoToken ? 0 : best.id;
    }
  }
}

// Grows with the logit.
__device__ inline std::uint32_t order_of(float logit) {
  const std::uint32_t bits = __float_as_uint(logit);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The kept candidates: a prefix of the ranking that ends with token `last_tied` of those whose order is `order`.
struct Prefix {
  std::uint32_t order;
  int last_tied;
  __device__ bool holds(std::uint32_t candidate, int id) const {
    return candidate > order || (candidate == order && id <= last_tied);
  }
};

struct Row {
  const float* logits;
  int vocab;
  float best;
  float temperature;
  __device__ float weight(int id) const { return expf((logits[id] - best) / temperature); }
};

// Sum of `amount(id)` over the vocabulary, for all threads.
template <typename Amount>
__device__ float total(const Row& row, Amount amount) {
  float sum = 0.0f;
  for (int id = threadIdx.x; id < row.vocab; id += kThreads) sum += amount(id);
  return block_sum<kThreads>(sum);
}

// The shortest prefix of `within` whose amounts add up to `enough`; `amount` must be the same for tied candidates.
template <typename Amount>
__device__ Prefix shortest_prefix(const Row& row, const Prefix& within, float enough, Amount amount) {
  Prefix found{0u, kNoToken};
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint32_t tried = found.order | 1u << bit;
    const float sum = total(row, [&](int id) {
      const std::uint32_t order = order_of(row.logits[id]);
      return order >= tried && within.holds(order, id) ? amount(id) : 0.0f;
    });
    if (sum >= enough) found.order = tried;
  }
  const float above = total(row, [&](int id) {
    const std::uint32_t order = order_of(row.logits[id]);
    return order > found.order && within.holds(order, id) ? amount(id) : 0.0f;
  });
  int low = 0, high = row.vocab - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    const float tied = total(row, [&](int id) {
      const std::uint32_t order = order_of(row.logits[id]);
      return order == found.order && id <= middle && within.holds(order, id) ? amount(id) : 0.0f;
    });
    if (above + tied >= enough) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  found.last_tied = low;
  return found;
}

// Walks the kept candidates in order of ids until their weight passes the drawn share; the last one if none does.
template <typename Kept>
__device__ int draw(const Row& row, float uniform, Kept kept) {
  __shared__ float sums[kThreads];
  __shared__ int drawn;
  const int length = (row.vocab + kThreads - 1) / kThreads;
  const int first = threadIdx.x * length, end = min(first + length, row.vocab);
  float sum = 0.0f;
  for (int id = first; id < end; ++id) sum += kept(id) ? row.weight(id) : 0.0f;
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float mass = 0.0f;
    for (int i = 0; i < kThreads; ++i) mass += sums[i];
    const float target = uniform * mass;
    float walked = 0.0f;
    int segment = 0;
    for (int i = 0; i < kThreads; ++i) {
      if (sums[i] <= 0.0f) continue;
      segment = i;
      if (walked + sums[i] > target) break;
      walked += sums[i];
    }
    drawn = -1;
    for (int id = segment * length; id < min((segment + 1) * length, row.vocab); ++id) {
      const float share = kept(id) ? row.weight(id) : 0.0f;
      if (share <= 0.0f) continue;
      drawn = id;
      walked += share;
      if (walked > target) break;
    }
  }
  __syncthreads();
  return drawn;
}

__global__ void __launch_bounds__(kThreads) sample_kernel(SampleArgs a) {
  vendor::wait_for_predecessor();
  vendor::let_successor_start();
  const int line = blockIdx.x;
  Row row{row_at(a.logits, line), static_cast<int>(a.logits.shape[1]), 0.0f, a.temperature[line]};
  Candidate best{-INFINITY, kNoToken};
  for (int id = threadIdx.x; id < row.vocab; id += kThreads) {
    const Candidate candidate{row.logits[id], id};
    if (ranks_before(candidate, best)) best = candidate;
  }
  best = block_best<kThreads>(best);
  row.best = best.logit;
  int token = best.id;
  if (row.temperature > 0.0f) {
    Prefix kept{0u, kNoToken};
    const int top_k = a.top_k[line];
    if (top_k > 0 && top_k < row.vocab) {
      kept = shortest_prefix(row, kept, static_cast<float>(top_k), [](int) { return 1.0f; });
    }
    const auto weight = [&](int id) { return row.weight(id); };
    if (a.top_p[line] < 1.0f) {
      const float mass =
          total(row, [&](int id) { return kept.holds(order_of(row.logits[id]), id) ? row.weight(id) : 0.0f; });
      const Prefix nucleus = shortest_prefix(row, kept, a.top_p[line] * mass, weight);
      kept = nucleus.holds(order_of(best.logit), best.id) ? nucleus : Prefix{order_of(best.logit), best.id};
    }
    const float uniform = philox_uniform(a.seed[line], static_cast<std::uint64_t>(a.index[line]));
    const float floor = a.min_p[line];
    token =
        draw(row, uniform, [&](int id) { return kept.holds(order_of(row.logits[id]), id) && row.weight(id) >= floor; });
    if (token < 0 || token >= row.vocab) token = best.id;
  }
  if (threadIdx.x == 0) a.token_ids[line] = token == kNoToken ? 0 : token;
}

}  // namespace

void sample(Queue* queue, const SampleArgs& args) {
  static LaunchCounter counter("sample");
  const auto lines = static_cast<unsigned>(args.logits.rows());
  if (lines == 0) return;
  if (!args.all_greedy) return launch(counter, queue, {dim3(lines), dim3(kThreads)}, sample_kernel, args);
  const unsigned parts = std::min<unsigned>(kMaxParts, blocks_for(args.logits.cols(), 2 * kThreads));
  auto* best = static_cast<Candidate*>(workspace(queue, lines * parts * sizeof(Candidate)));
  launch(counter, queue, {dim3(lines, parts), dim3(kThreads)}, argmax_kernel,
         Greedy{args.logits, args.token_ids, best, of(queue).arrivals});
}

}  // namespace vt::gpu

// Paged attention in tiles: queries of one request that share a kv head walk its cache together. Keys are stored
// transposed in runs of sixteen positions, (head_dim, 16); values as they come.
#include <algorithm>
#include <vector>

#include "device.h"
#include "fast/amx.h"
#include "fast/kernels.h"
#include "fast/ops.h"
#include "vt/counters.h"

namespace cpu::fast {
namespace {

constexpr std::int64_t kRun = 16;  // positions

// The tokens of one request that one tile attends for.
struct Task {
  std::int32_t request;
  std::int32_t first_token;
  std::int32_t tokens;
};

std::vector<Task> make_tasks(const vt::AttentionArgs& args, std::int32_t tokens_per_tile) {
  std::vector<Task> tasks;
  for (std::int32_t request = 0; request < args.num_reqs; ++request) {
    const std::int32_t end = args.query_start_loc[request + 1];
    if (args.seq_lens[request] == 0) continue;
    for (std::int32_t token = args.query_start_loc[request]; token < end; token += tokens_per_tile) {
      tasks.push_back({request, token, std::min(tokens_per_tile, end - token)});
    }
  }
  // Long rows first: what is left at the end is short.
  std::reverse(tasks.begin(), tasks.end());
  return tasks;
}

char* head_of(const vt::Tensor& cache, std::int64_t head) {
  return cache.as<char>() + head * cache.stride[1];
}

constexpr std::int64_t kStride = 32;  // positions that scores are rounded up to

// Which kernel it is, and how many queries it takes at once.
struct Kernel {
  void (*attend)(const AttentionTile& tile);
  std::int64_t queries;
};

Kernel kernel_for(const vt::Tensor& keys) {
  if (amx_attends(keys.cols(), keys.dtype == vt::DType::F16)) return {amx_attend, AttentionTile::kMaxQueries};
  return {kernels().attend, AttentionTile::kVectorQueries};
}

// What each thread writes: scores, then the gathered keys and values where pages are not whole runs.
struct Workspace {
  float* scores;
  std::int64_t score_stride;
  char* gathered;
};

bool whole_runs(const vt::Tensor& keys) {
  return keys.shape[2] % kRun == 0;
}

std::size_t gathered_bytes(const vt::AttentionArgs& args, std::int64_t stride) {
  if (whole_runs(args.cache.keys)) return 0;
  return static_cast<std::size_t>(2 * stride * vt::bytes_for(args.cache.keys.dtype, args.q.cols()));
}

template <typename T>
void gather(const vt::AttentionArgs& args, const std::int32_t* pages, std::int64_t head, std::int64_t length,
            std::int64_t stride, char* to) {
  const std::int64_t dim = args.q.cols();
  const std::int64_t size = args.cache.keys.shape[2];
  T* keys = reinterpret_cast<T*>(to);
  T* values = keys + stride * dim;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t from = i % size * dim;
    const T* key = args.cache.keys.row<const T>(pages[i / size], head) + from;
    const T* value = args.cache.values.row<const T>(pages[i / size], head) + from;
    for (std::int64_t d = 0; d < dim; ++d) keys[i / kRun * kRun * dim + d * kRun + i % kRun] = key[d];
    std::copy_n(value, dim, values + i * dim);
  }
}

// Makes the tile read gathered copies: one page that holds everything.
void gather_for(const vt::AttentionArgs& args, std::int64_t kv_head, const Workspace& workspace, AttentionTile& tile) {
  static constexpr std::int32_t kOnlyPage = 0;
  const std::int64_t length = tile.longest();
  if (tile.half) {
    gather<std::uint16_t>(args, tile.pages, kv_head, length, workspace.score_stride, workspace.gathered);
  } else {
    gather<float>(args, tile.pages, kv_head, length, workspace.score_stride, workspace.gathered);
  }
  tile.keys = workspace.gathered;
  tile.values = workspace.gathered + gathered_bytes(args, workspace.score_stride) / 2;
  tile.pages = &kOnlyPage;
  tile.blocks_per_page = workspace.score_stride;
}

void run_task(const vt::AttentionArgs& args, const Kernel& kernel, const Task& task, std::int64_t first_head,
              std::int64_t heads, const Workspace& workspace) {
  const vt::Tensor& keys = args.cache.keys;
  const std::int64_t kv_head = first_head / (args.q.shape[1] / keys.shape[1]);
  AttentionTile tile{.queries = 0,
                     .q = {},
                     .out = {},
                     .lengths = {},
                     .scale = args.scale,
                     .head_dim = args.q.cols(),
                     .blocks_per_page = keys.shape[2] / kRun,
                     .pages = args.block_table + std::int64_t{task.request} * args.block_table_stride,
                     .keys = head_of(keys, kv_head),
                     .values = head_of(args.cache.values, kv_head),
                     .page_stride = keys.stride[0],
                     .half = keys.dtype == vt::DType::F16,
                     .scores = workspace.scores,
                     .score_stride = workspace.score_stride};
  for (std::int32_t token = task.first_token; token < task.first_token + task.tokens; ++token) {
    const std::int32_t left = args.query_start_loc[task.request + 1] - 1 - token;
    for (std::int64_t head = first_head; head < first_head + heads; ++head) {
      tile.q[tile.queries] = args.q.row<const float>(token, head);
      tile.out[tile.queries] = args.out.row(token, head);
      tile.lengths[tile.queries++] = args.seq_lens[task.request] - left;
    }
  }
  if (!whole_runs(keys)) gather_for(args, kv_head, workspace, tile);
  kernel.attend(tile);
}

std::string refuses(vt::Precision precision, const vt::AttentionShape& shape) {
  if (precision == vt::Precision::reference) return "reference precision uses the reference kernels";
  if (shape.head_dim % kRun != 0) return "head_dim " + std::to_string(shape.head_dim) + " is not a multiple of 16";
  if (shape.kv_dtype == vt::DType::BF16) return "the KV cache is BF16, not F16 or F32";
  return "";
}

}  // namespace

std::string tiled_refuses(vt::Device*, vt::Precision precision, const vt::AttentionShape& shape) {
  if (shape.block_size % kRun != 0)
    return "block_size " + std::to_string(shape.block_size) + " is not a multiple of 16";
  return refuses(precision, shape);
}

std::string gathered_refuses(vt::Device*, vt::Precision precision, const vt::AttentionShape& shape) {
  if (shape.block_size % kRun == 0) return "it is for block sizes that are not a multiple of 16";
  return refuses(precision, shape);
}

void attention(vt::Queue* queue, const vt::AttentionArgs& args) {
  static vt::LaunchCounter counter("attention");
  counter.add();
  CpuQueue& owner = cpu_queue(queue);
  const std::int64_t heads = args.q.shape[1];
  const std::int64_t group = heads / args.cache.keys.shape[1];
  const Kernel kernel = kernel_for(args.cache.keys);
  const std::int64_t together = std::min(group, kernel.queries);  // a wider group is cut
  const std::int64_t cuts = (group + together - 1) / together;
  const std::vector<Task> tasks = make_tasks(args, static_cast<std::int32_t>(kernel.queries / together));
  const std::int64_t per_kv_head = cuts * static_cast<std::int64_t>(tasks.size());
  const std::int64_t stride = (args.max_seq_len + kStride - 1) / kStride * kStride;
  const std::size_t score_bytes = static_cast<std::size_t>(stride * kernel.queries) * sizeof(float);
  const std::size_t bytes = score_bytes + gathered_bytes(args, stride);
  char* memory = owner.tiles.get<char>(bytes * static_cast<std::size_t>(owner.pool.size()));
  std::atomic<std::int64_t> next{0};
  const std::int64_t total = per_kv_head * args.cache.keys.shape[1];
  owner.pool.run([&](int thread, int) {
    char* own = memory + bytes * static_cast<std::size_t>(thread);
    const Workspace workspace{
        .scores = reinterpret_cast<float*>(own), .score_stride = stride, .gathered = own + score_bytes};
    for (std::int64_t i = next.fetch_add(1); i < total; i = next.fetch_add(1)) {
      const std::int64_t within = i % per_kv_head;
      const std::int64_t cut = within % cuts;
      const std::int64_t first_head = i / per_kv_head * group + cut * together;
      run_task(args, kernel, tasks[static_cast<std::size_t>(within / cuts)], first_head,
               std::min(together, group - cut * together), workspace);
    }
  });
}

namespace {

template <typename T>
void write_key(const T* key, std::int64_t dim, T* block, std::int64_t offset) {
  T* run = block + offset / kRun * kRun * dim;
  for (std::int64_t d = 0; d < dim; ++d) run[d * kRun + offset % kRun] = key[d];
}

void write_token(const vt::KvWriteArgs& args, std::int64_t token, std::int64_t slot) {
  const vt::Tensor& keys = args.cache.keys;
  const vt::Tensor& values = args.cache.values;
  const std::int64_t dim = keys.cols();
  const std::int64_t block = slot / keys.shape[2];
  const std::int64_t offset = slot % keys.shape[2];
  for (std::int64_t head = 0; head < keys.shape[1]; ++head) {
    const float* k = args.k.row<const float>(token, head);
    const float* v = args.v.row<const float>(token, head);
    if (keys.dtype == vt::DType::F32) {
      write_key(k, dim, keys.row<float>(block, head), offset);
      std::copy_n(v, dim, values.row<float>(block, head) + offset * dim);
    } else {
      std::uint16_t rounded[1024];
      for (std::int64_t d = 0; d < dim; d += 1024) {
        const std::int64_t count = std::min<std::int64_t>(1024, dim - d);
        kernels().to_half(k + d, rounded, count);
        std::uint16_t* run = keys.row<std::uint16_t>(block, head) + offset / kRun * kRun * dim;
        for (std::int64_t i = 0; i < count; ++i) run[(d + i) * kRun + offset % kRun] = rounded[i];
      }
      kernels().to_half(v, values.row<std::uint16_t>(block, head) + offset * dim, dim);
    }
  }
}

}  // namespace

void kv_write(vt::Queue* queue, const vt::KvWriteArgs& args) {
  static vt::LaunchCounter counter("kv_write");
  counter.add();
  pool_of(queue).split(args.k.rows(), 32, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      if (args.slot_mapping[token] >= 0) write_token(args, token, args.slot_mapping[token]);
    }
  });
}

}  // namespace cpu::fast

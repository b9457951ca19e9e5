// Causal attention over the paged cache. Every (token, head) walks the positions from 0 up, so its bits depend neither
// on the chunk it came in nor on the other requests.
#include <algorithm>
#include <cmath>
#include <vector>

#include "device.h"
#include "reference/dot.h"
#include "reference/ops.h"
#include "vt/counters.h"
#include "vt/half.h"

namespace cpu::reference {
namespace {

void to_float(vt::DType dtype, const void* in, float* out, std::int64_t count) {
  const auto* bits = static_cast<const std::uint16_t*>(in);
  switch (dtype) {
    case vt::DType::F16:
      for (std::int64_t i = 0; i < count; ++i) out[i] = vt::f16_to_float(bits[i]);
      return;
    case vt::DType::BF16:
      for (std::int64_t i = 0; i < count; ++i) out[i] = vt::bf16_to_float(bits[i]);
      return;
    default:
      std::copy_n(static_cast<const float*>(in), count, out);
  }
}

void from_float(vt::DType dtype, const float* in, void* out, std::int64_t count) {
  auto* bits = static_cast<std::uint16_t*>(out);
  switch (dtype) {
    case vt::DType::F16:
      for (std::int64_t i = 0; i < count; ++i) bits[i] = vt::float_to_f16(in[i]);
      return;
    case vt::DType::BF16:
      for (std::int64_t i = 0; i < count; ++i) bits[i] = vt::float_to_bf16(in[i]);
      return;
    default:
      std::copy_n(in, count, static_cast<float*>(out));
  }
}

// The place of one token of one head in a cache.
char* place(const vt::Tensor& cache, std::int64_t block, std::int64_t head, std::int64_t offset) {
  return cache.row<char>(block, head) + offset * cache.stride[2];
}

struct Query {
  std::int64_t token;
  std::int64_t head;
  std::int64_t kv_head;
  std::int64_t length;              // positions it sees
  const std::int32_t* block_table;  // (blocks)
};

class Attend {
 public:
  explicit Attend(const vt::AttentionArgs& args)
      : args_(args), dim_(args.q.cols()), vector_(static_cast<std::size_t>(dim_)) {}

  void operator()(const Query& query) {
    scores_.resize(static_cast<std::size_t>(query.length));
    const float* q = args_.q.row<const float>(query.token, query.head);
    for (std::int64_t i = 0; i < query.length; ++i) {
      scores_[static_cast<std::size_t>(i)] = dot(q, read(args_.cache.keys, query, i), dim_) * args_.scale;
    }
    const float largest = *std::max_element(scores_.begin(), scores_.end());
    float sum = 0.0f;
    for (float& score : scores_) sum += score = std::exp(score - largest);

    float* out = args_.out.row(query.token, query.head);
    std::fill_n(out, dim_, 0.0f);
    for (std::int64_t i = 0; i < query.length; ++i) {
      const float share = scores_[static_cast<std::size_t>(i)] / sum;
      const float* value = read(args_.cache.values, query, i);
      for (std::int64_t d = 0; d < dim_; ++d) out[d] += share * value[d];
    }
  }

 private:
  const float* read(const vt::Tensor& cache, const Query& query, std::int64_t position) {
    const std::int64_t block_size = cache.shape[2];
    const char* from = place(cache, query.block_table[position / block_size], query.kv_head, position % block_size);
    if (cache.dtype == vt::DType::F32) return reinterpret_cast<const float*>(from);
    to_float(cache.dtype, from, vector_.data(), dim_);
    return vector_.data();
  }

  const vt::AttentionArgs& args_;
  std::int64_t dim_;
  std::vector<float> vector_;
  std::vector<float> scores_;
};

void one_request_token(const vt::AttentionArgs& args, Attend& attend, std::int32_t request, std::int64_t token) {
  const std::int64_t heads = args.q.shape[1];
  const std::int64_t group = heads / args.cache.keys.shape[1];
  const std::int64_t left = args.query_start_loc[request + 1] - 1 - token;
  for (std::int64_t head = 0; head < heads; ++head) {
    attend({.token = token,
            .head = head,
            .kv_head = head / group,
            .length = args.seq_lens[request] - left,
            .block_table = args.block_table + std::int64_t{request} * args.block_table_stride});
  }
}

}  // namespace

void attention(vt::Queue* queue, const vt::AttentionArgs& args) {
  static vt::LaunchCounter counter("attention");
  counter.add();
  const std::int32_t tokens = args.query_start_loc[args.num_reqs];
  pool_of(queue).each(tokens, [&](std::int64_t token) {
    const std::int32_t* after = std::upper_bound(args.query_start_loc, args.query_start_loc + args.num_reqs, token);
    const auto request = static_cast<std::int32_t>(after - args.query_start_loc) - 1;
    if (args.seq_lens[request] == 0) return;
    Attend attend(args);
    one_request_token(args, attend, request, token);
  });
}

void kv_write(vt::Queue*, const vt::KvWriteArgs& args) {
  static vt::LaunchCounter counter("kv_write");
  counter.add();
  const std::int64_t block_size = args.cache.keys.shape[2];
  for (std::int64_t token = 0; token < args.k.rows(); ++token) {
    const std::int64_t slot = args.slot_mapping[token];
    if (slot < 0) continue;
    for (std::int64_t head = 0; head < args.k.shape[1]; ++head) {
      from_float(args.cache.keys.dtype, args.k.row<const float>(token, head),
                 place(args.cache.keys, slot / block_size, head, slot % block_size), args.k.cols());
      from_float(args.cache.values.dtype, args.v.row<const float>(token, head),
                 place(args.cache.values, slot / block_size, head, slot % block_size), args.v.cols());
    }
  }
}

}  // namespace cpu::reference

// Picks the next token of each request; the rules stand at SampleArgs.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "device.h"
#include "reference/ops.h"
#include "vt/counters.h"
#include "vt/philox.h"

namespace cpu::reference {
namespace {

std::int64_t largest(const float* logits, std::int64_t vocab) {
  return std::max_element(logits, logits + vocab) - logits;
}

struct Choice {
  float temperature;
  std::int64_t top_k;
  float top_p;
  float min_p;
  float uniform;
};

// By falling logit, then rising id.
struct Ranking {
  const float* logits;
  bool operator()(std::int32_t a, std::int32_t b) const {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  }
};

class Candidates {
 public:
  Candidates(const float* logits, std::int64_t vocab, float temperature) : logits_(logits) {
    ids_.resize(static_cast<std::size_t>(vocab));
    std::iota(ids_.begin(), ids_.end(), 0);
    best_ = logits[largest(logits, vocab)];
    temperature_ = temperature;
  }

  void keep_top_k(std::int64_t k) {
    if (k <= 0 || k >= static_cast<std::int64_t>(ids_.size())) return;
    std::nth_element(ids_.begin(), ids_.begin() + k, ids_.end(), Ranking{logits_});
    ids_.resize(static_cast<std::size_t>(k));
  }

  void keep_top_p(float share) {
    if (share >= 1.0f) return;
    std::sort(ids_.begin(), ids_.end(), Ranking{logits_});
    const double enough = share * mass();
    double sum = 0.0;
    std::size_t kept = 0;
    while (kept < ids_.size() && (kept == 0 || sum < enough)) sum += weight(ids_[kept++]);
    ids_.resize(kept);
  }

  void keep_min_p(float share) {
    std::erase_if(ids_, [&](std::int32_t id) { return weight(id) < share; });  // the best one's weight is 1
  }

  std::int64_t draw(float uniform) {
    std::sort(ids_.begin(), ids_.end());
    const double target = uniform * mass();
    double sum = 0.0;
    std::int64_t last = ids_.front();
    for (const std::int32_t id : ids_) {
      const double share = weight(id);
      if (share <= 0.0) continue;
      sum += share;
      last = id;
      if (sum > target) break;
    }
    return last;
  }

 private:
  float weight(std::int32_t id) const { return std::exp((logits_[id] - best_) / temperature_); }

  double mass() const {
    double sum = 0.0;
    for (const std::int32_t id : ids_) sum += weight(id);
    return sum;
  }

  const float* logits_;
  std::vector<std::int32_t> ids_;
  float best_;
  float temperature_;
};

std::int64_t choose(const float* logits, std::int64_t vocab, const Choice& choice) {
  if (choice.temperature <= 0.0f) return largest(logits, vocab);
  Candidates candidates(logits, vocab, choice.temperature);
  candidates.keep_top_k(choice.top_k);
  candidates.keep_top_p(choice.top_p);
  candidates.keep_min_p(choice.min_p);
  return candidates.draw(choice.uniform);
}

}  // namespace

void sample(vt::Queue* queue, const vt::SampleArgs& args) {
  static vt::LaunchCounter counter("sample");
  counter.add();
  pool_of(queue).each(args.logits.rows(), [&](std::int64_t line) {
    const float* logits = args.logits.row<const float>(line);
    const std::int64_t vocab = args.logits.cols();
    if (args.all_greedy) {
      args.token_ids[line] = largest(logits, vocab);
      return;
    }
    args.token_ids[line] =
        choose(logits, vocab,
               {.temperature = args.temperature[line],
                .top_k = args.top_k[line],
                .top_p = args.top_p[line],
                .min_p = args.min_p[line],
                .uniform = vt::philox_uniform(args.seed[line], static_cast<std::uint64_t>(args.index[line]))});
  });
}

}  // namespace cpu::reference

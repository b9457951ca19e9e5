// Looking up backends, ops and attention backends by name.
#include "vt/backend.h"

#include <array>
#include <string>

namespace vt {
namespace {

struct OpEntry {
  std::string_view name;
  bool (*present)(const OpTable&);
};

template <auto Member>
constexpr OpEntry entry(std::string_view name) {
  return {name, [](const OpTable& ops) { return ops.*Member != nullptr; }};
}

constexpr std::array kOps{
    entry<&OpTable::embedding>("embedding"),
    entry<&OpTable::matmul>("matmul"),
    entry<&OpTable::matmul_silu_mul>("matmul_silu_mul"),
    entry<&OpTable::rms_norm>("rms_norm"),
    entry<&OpTable::rope>("rope"),
    entry<&OpTable::silu_mul>("silu_mul"),
    entry<&OpTable::copy_blocks>("copy_blocks"),
    entry<&OpTable::gather_rows>("gather_rows"),
    entry<&OpTable::logits_processors>("logits_processors"),
    entry<&OpTable::sample>("sample"),
    entry<&OpTable::logprobs>("logprobs"),
    entry<&OpTable::count_tokens>("count_tokens"),
    entry<&OpTable::combine>("combine"),
    entry<&OpTable::scatter_last_sampled>("scatter_last_sampled"),
    entry<&OpTable::apply_last_sampled_ops>("apply_last_sampled_ops"),
    entry<&OpTable::dequantize>("dequantize"),
    entry<&OpTable::decode_step>("decode_step"),
};

static_assert(sizeof(OpTable) == kOps.size() * sizeof(void*), "every op of the table needs its entry");

template <typename Range, typename Name>
std::string joined(const Range& range, Name name_of) {
  std::string text;
  for (const auto& item : range) text += (text.empty() ? "" : ", ") + std::string(name_of(item));
  return text;
}

}  // namespace

std::span<const std::string_view> op_names() {
  static const auto names = [] {
    std::array<std::string_view, kOps.size()> list;
    for (std::size_t i = 0; i < kOps.size(); ++i) list[i] = kOps[i].name;
    return list;
  }();
  return names;
}

bool has_op(const OpTable& ops, std::string_view name) {
  for (const OpEntry& op : kOps) {
    if (op.name == name) return op.present(ops);
  }
  throw Error("there is no op '" + std::string(name) + "'; there are " +
              joined(kOps, [](const OpEntry& op) { return op.name; }));
}

const Backend& backend_named(std::string_view name) {
  for (const Backend* backend : backends()) {
    if (backend->name == name) return *backend;
  }
  throw Error("no backend '" + std::string(name) + "' in this build; it has " +
              joined(backends(), [](const Backend* backend) { return backend->name; }));
}

void require(const Backend& backend, const OpTable& ops, std::span<const std::string_view> names,
             std::string_view user) {
  for (const std::string_view op : names) {
    if (has_op(ops, op)) continue;
    throw Error("backend '" + std::string(backend.name) + "' has no op '" + std::string(op) + "', which " +
                std::string(user) + " needs");
  }
}

const AttentionBackend& choose_attention(const Backend& backend, Device* device, Precision precision,
                                         const AttentionShape& shape, std::string_view name) {
  std::string reasons;
  for (const AttentionBackend& candidate : backend.attention) {
    if (!name.empty() && candidate.name != name) continue;
    const std::string reason = candidate.refuses(device, precision, shape);
    if (reason.empty()) return candidate;
    reasons += "; '" + std::string(candidate.name) + "': " + reason;
  }
  if (reasons.empty()) {
    throw Error("backend '" + std::string(backend.name) + "' has no attention backend '" + std::string(name) +
                "'; it has " + joined(backend.attention, [](const AttentionBackend& one) { return one.name; }));
  }
  throw Error("no attention backend of '" + std::string(backend.name) + "' can serve this model" + reasons);
}

}  // namespace vt

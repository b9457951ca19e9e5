// The rocm platform before the port: what was sampled is kept on the host.

#include "vt/platform.h"

#include <vector>

namespace vt {
namespace {

class RocmPlatform final : public Platform {
 public:
  explicit RocmPlatform(std::int32_t rows) : last_sampled_(static_cast<std::size_t>(rows)) {}

  std::string name() const override { return "rocm"; }
  std::int64_t read_last_sampled(std::int32_t row) const override { return last_sampled_[static_cast<std::size_t>(row)]; }
  void write_last_sampled(std::int32_t row, std::int64_t token) override {
    last_sampled_[static_cast<std::size_t>(row)] = token;
  }

 private:
  std::vector<std::int64_t> last_sampled_;  // (rows)
};

}  // namespace

std::unique_ptr<Platform> make_platform(std::int32_t rows) { return std::make_unique<RocmPlatform>(rows); }

}  // namespace vt

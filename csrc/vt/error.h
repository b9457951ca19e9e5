// What the core throws; the bindings translate it.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

namespace vt {

// What the core refuses: an unknown backend, a missing op, an unsupported type, a failed device call.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A caller's mistake: a wrong shape, an index out of range.
struct BadArgument : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace vt

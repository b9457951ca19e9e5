// Names of element types.
#include "vt/dtype.h"

#include <array>
#include <string>
#include <utility>

#include "vt/error.h"

namespace vt {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 14> kNames{{
    {DType::F32, "F32"},
    {DType::F16, "F16"},
    {DType::BF16, "BF16"},
    {DType::Q4_0, "Q4_0"},
    {DType::Q4_1, "Q4_1"},
    {DType::Q5_0, "Q5_0"},
    {DType::Q5_1, "Q5_1"},
    {DType::Q8_0, "Q8_0"},
    {DType::Q4_K, "Q4_K"},
    {DType::Q5_K, "Q5_K"},
    {DType::Q6_K, "Q6_K"},
    {DType::I32, "I32"},
    {DType::I64, "I64"},
    {DType::U32, "U32"},
}};

}  // namespace

std::string_view name(DType dtype) {
  for (const auto& [known, text] : kNames) {
    if (known == dtype) return text;
  }
  return "?";
}

DType dtype_named(std::string_view name) {
  std::string known;
  for (const auto& [dtype, text] : kNames) {
    if (text == name) return dtype;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw Error("unknown type '" + std::string(name) + "'; there are " + known);
}

}  // namespace vt

// Block formats of GGUF to float32.
#pragma once

#include <cstdint>

#include "vt/dtype.h"

namespace cpu::reference {

// `count` elements, a whole number of blocks. `in` may have any alignment.
void dequantize_row(vt::DType dtype, const void* in, float* out, std::int64_t count);

}  // namespace cpu::reference

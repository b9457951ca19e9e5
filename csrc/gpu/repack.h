// From the rows of a model file to the planes of weight.h, on the host.
#pragma once

#include <cstdint>

#include "vt/tensor.h"

namespace vt::gpu {

// The planes of one weight, in host memory.
struct HostPlanes {
  unsigned char* quants;
  unsigned char* high;
  unsigned char* scales;
  unsigned char* super;
};

// Writes file rows `part` as rows `first_row`.. of the planes. Quantised types only.
void repack_rows(const Tensor& part, std::int64_t first_row, const HostPlanes& planes);

}  // namespace vt::gpu

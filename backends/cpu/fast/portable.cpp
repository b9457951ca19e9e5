// The kernels for any processor.
#include "fast/isa_portable.h"
// The instruction set comes first: everything below is written in its terms.
#include "fast/attend.h"
#include "fast/elementwise.h"
#include "fast/multiply.h"

namespace cpu::fast {

extern const Kernels kPortable;
const Kernels kPortable{
    .name = "portable",
    .quantise = quantise,
    .multiply = kMultiply,
    .store = store,
    .store_gated = store_gated,
    .norm = norm,
    .silu_mul = silu_mul,
    .attend = attend,
    .argmax = argmax,
    .sum_exp = sum_exp,
    .to_half = to_half,
};

}  // namespace cpu::fast

// The kernels for AVX2.
#include "fast/isa_avx2.h"
// The instruction set comes first: everything below is written in its terms.
#include "fast/attend.h"
#include "fast/elementwise.h"
#include "fast/multiply.h"

namespace cpu::fast {

extern const Kernels kAvx2;
const Kernels kAvx2{
    .name = "avx2",
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

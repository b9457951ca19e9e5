// The kernels for AVX-512 with VNNI.
#include "fast/isa_avx512.h"
// The instruction set comes first: everything below is written in its terms.
#include "fast/attend.h"
#include "fast/elementwise.h"
#include "fast/multiply.h"

namespace cpu::fast {

extern const Kernels kAvx512;
const Kernels kAvx512{
    .name = "avx512",
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

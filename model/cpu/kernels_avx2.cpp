#define TROUPE_ISA avx2
#define TROUPE_LANES 8

#include "model/cpu/kernel_table.hpp"
#include "model/cpu/kernel_tables.hpp"

namespace troupe::cpu {

const Kernels kAvx2Kernels = {
    .instruction_set = "avx2",
    .f32 = avx2::kTypedKernels<float>,
    .bf16 = avx2::kTypedKernels<BFloat16>,
};

}  // namespace troupe::cpu

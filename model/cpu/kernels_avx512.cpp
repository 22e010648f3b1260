#define TROUPE_ISA avx512
#define TROUPE_LANES 16

#include "model/cpu/kernel_table.hpp"
#include "model/cpu/kernel_tables.hpp"

namespace troupe::cpu {

const Kernels kAvx512Kernels = {
    .instruction_set = "avx512",
    .f32 = avx512::kTypedKernels<float>,
    .bf16 = avx512::kTypedKernels<BFloat16>,
};

}  // namespace troupe::cpu

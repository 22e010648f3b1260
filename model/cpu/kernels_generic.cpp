#define TROUPE_ISA generic
#define TROUPE_LANES 4

#include "model/cpu/kernel_table.hpp"
#include "model/cpu/kernel_tables.hpp"

namespace troupe::cpu {

const Kernels kGenericKernels = {
    .instruction_set = "generic",
    .f32 = generic::kTypedKernels<float>,
    .bf16 = generic::kTypedKernels<BFloat16>,
};

}  // namespace troupe::cpu

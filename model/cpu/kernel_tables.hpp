#pragma once

#include "model/cpu/kernels.hpp"

namespace troupe::cpu {

/// Vectors of 4 floats, for any processor.
extern const Kernels kGenericKernels;
#if defined(__x86_64__)
/// Needs avx2 and fma.
extern const Kernels kAvx2Kernels;
/// Needs avx512f, avx512bw, avx512dq and avx512vl.
extern const Kernels kAvx512Kernels;
#endif

}  // namespace troupe::cpu

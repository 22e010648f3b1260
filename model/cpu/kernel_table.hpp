/// The table of kernels for one instruction set. Included once by each kernels_<isa>.cpp, which defines TROUPE_ISA (a
/// namespace) and TROUPE_LANES (floats in a vector) and is compiled with the flags of that instruction set.
#pragma once

#include "model/cpu/attention_tile.hpp"
#include "model/cpu/elementwise.hpp"
#include "model/cpu/kernels.hpp"

namespace troupe::cpu::TROUPE_ISA {

template <class T>
constexpr TypedKernels<T> kTypedKernels = {
    .rms_norm = &rms_norm<T>,
    .add = &add<T>,
    .activate = &activate<T>,
    .rotate = &rotate<T>,
    .attention = &attention<T>,
};

}  // namespace troupe::cpu::TROUPE_ISA

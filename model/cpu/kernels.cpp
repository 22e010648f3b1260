#include "model/cpu/kernels.hpp"

#include "model/cpu/kernel_tables.hpp"

namespace troupe::cpu {

std::int64_t attention_scratch_size(std::int32_t head_dim) noexcept {
  // The larger of the two loops' needs, that of ManyRows: queries, sums, scores, converted keys and values.
  constexpr std::int64_t kMaxKeysAtOnce = 32;
  return (2 * head_dim + kMaxKeysAtOnce) * kMaxTileRows + 2 * kMaxKeysAtOnce * head_dim;
}

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> available = {&kGenericKernels};
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (has_avx2) {
    available.push_back(&kAvx2Kernels);
  }
  const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  if (has_avx2 && has_avx512) {
    available.push_back(&kAvx512Kernels);
  }
#endif
  return available;
}

const Kernels& best_kernels() noexcept {
  static const Kernels& best = *available_kernels().back();
  return best;
}

}  // namespace troupe::cpu

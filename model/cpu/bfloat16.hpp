#pragma once

#include <bit>
#include <cstdint>

namespace troupe::cpu {

/// A bfloat16 in memory: the upper half of a float32. Same layout as c10::BFloat16, without LibTorch.
struct BFloat16 {
  std::uint16_t bits;
};

[[nodiscard]] inline float to_float(BFloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}
[[nodiscard]] inline float to_float(float value) noexcept { return value; }

/// Rounds to nearest, ties to even. NaN stays NaN.
[[nodiscard]] inline BFloat16 to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) {
    return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U)};
}

}  // namespace troupe::cpu

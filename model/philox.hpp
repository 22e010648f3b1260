#pragma once

/// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
/// 1, 2, 3" (2011). A block of 128 random bits is a pure function of key and counter, so there is no state that a
/// neighbour, a preemption or a pipeline could disturb.

#include <array>
#include <cstdint>

namespace troupe {

/// Returns the block of random words that belongs to `counter` under `key`.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                                std::array<std::uint32_t, 2> key) noexcept {
  constexpr int kRounds = 10;
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

/// Returns the uniform number in [0, 1) that belongs to a position of a request's sequence.
[[nodiscard]] constexpr double uniform_at(std::uint64_t seed, std::uint64_t position) noexcept {
  constexpr double kTwoToMinus53 = 0x1.0p-53;
  const auto bits =
      philox4x32({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32U), 0U, 0U},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  const std::uint64_t word = (static_cast<std::uint64_t>(bits[0]) << 32U) | bits[1];
  return static_cast<double>(word >> 11U) * kTwoToMinus53;
}

}  // namespace troupe

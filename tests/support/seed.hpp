#pragma once

/// Seeds of randomised tests: new ones each time, printed on failure, replayed with TROUPE_SEED.

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace troupe::test {

/// Returns TROUPE_SEED if it is set, else a random number. Put `INFO("TROUPE_SEED=" << seed)` beside it.
inline std::uint64_t test_seed() {
  if (const char* given = std::getenv("TROUPE_SEED"); given != nullptr) {
    return std::stoull(given);
  }
  return std::random_device{}();
}

}  // namespace troupe::test

#include "actors/engine_config.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "actors/scheduling_policy.hpp"

namespace troupe {
namespace {

struct Setting {
  std::string_view name;
  std::int64_t value = 0;
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};

Result<void> check(const Setting& setting) {
  if (setting.value >= setting.lowest && setting.value <= setting.highest) {
    return {};
  }
  return fail(ErrorCode::invalid_request, std::string(setting.name) + " must be in [" + std::to_string(setting.lowest) +
                                              ", " + std::to_string(setting.highest) + "], but is " +
                                              std::to_string(setting.value));
}

}  // namespace

Result<void> validate(const EngineConfig& config) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (Result<void> checked = check({"block_size", config.block_size, 1, kMax / 4}); !checked) {
    return checked;
  }
  const std::array settings{
      // Slots are numbered in 31 bits, and an executor may add two blocks that absorb padding.
      Setting{"num_blocks", config.num_blocks, 0, kMax / config.block_size - 2},
      Setting{"max_batch_tokens", config.max_batch_tokens, 1, kMax},
      Setting{"max_batch_requests", config.max_batch_requests, 1, kMax},
      Setting{"max_waiting_requests", config.max_waiting_requests, 1, kMax},
      Setting{"pipeline_depth", config.pipeline_depth, 1, 2},
      Setting{"cache_bytes", config.cache_bytes, 0, std::numeric_limits<std::int64_t>::max()},
      Setting{"pool_threads", config.pool_threads, 1, 1024},
  };
  for (const Setting& setting : settings) {
    if (Result<void> checked = check(setting); !checked) {
      return checked;
    }
  }
  return make_scheduling_policy(config.scheduler, config.safety_margin).map([](const auto&) {});
}

}  // namespace troupe

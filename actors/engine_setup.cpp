#include "actors/engine_setup.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "actors/scheduling_policy.hpp"
#include "cache/host_memory.hpp"
#include "cache/memory_sizing.hpp"

namespace troupe {

namespace {

struct Setting {
  std::string_view name;
  std::int64_t value = 0;
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};

}  // namespace

Result<void> check_engine_settings(const EngineConfig& config, const ModelDescription& model) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const std::array settings{
      Setting{"block_size", config.block_size, 1, kMax},
      // Slots are numbered in 31 bits, and two more blocks absorb padding.
      Setting{"num_blocks", config.num_blocks, 0, kMax / std::max(config.block_size, 1) - 2},
      Setting{"max_batch_tokens", config.max_batch_tokens, 1, kMax},
      Setting{"max_batch_requests", config.max_batch_requests, 1, kMax},
      Setting{"max_waiting_requests", config.max_waiting_requests, 1, kMax},
      Setting{"pipeline_depth", config.pipeline_depth, 1, 2},
      Setting{"cache_bytes", config.cache_bytes, 0, std::numeric_limits<std::int64_t>::max()},
      Setting{"pool_threads", config.pool_threads, 1, 1024},
      Setting{"vocab_size", model.vocab_size, 1, kMax},
      Setting{"max_position_embeddings", model.max_position_embeddings, 1, kMax},
  };
  for (const Setting& setting : settings) {
    if (setting.value < setting.lowest || setting.value > setting.highest) {
      return fail(ErrorCode::invalid_request, std::string(setting.name) + " must be in [" +
                                                  std::to_string(setting.lowest) + ", " +
                                                  std::to_string(setting.highest) + "], but is " +
                                                  std::to_string(setting.value));
    }
  }
  if (!(config.safety_margin < 1.0)) {
    return fail(ErrorCode::invalid_request,
                "safety_margin must be below 1, but is " + std::to_string(config.safety_margin));
  }
  if (auto policy = make_scheduling_policy(config.scheduler, config.safety_margin); !policy) {
    return tl::unexpected(policy.error());
  }
  return {};
}

Result<std::int32_t> choose_num_blocks(const EngineConfig& config, const ModelDescription& model,
                                       const std::vector<LayerGroup>& groups) {
  if (config.num_blocks > 0) {
    return config.num_blocks;
  }
  const Result<HostMemory> memory = read_host_memory();
  if (!memory) {
    return tl::unexpected(memory.error());
  }
  const Result<std::int64_t> budget = resolve_memory_budget({.bytes = config.cache_bytes}, memory->available_bytes);
  if (!budget) {
    return tl::unexpected(budget.error());
  }
  CacheCosts costs;
  costs.block_size = config.block_size;
  costs.num_groups = static_cast<std::int32_t>(groups.size());
  costs.layers_per_group = static_cast<std::int32_t>(groups.front().layers.size());
  costs.kv_bytes_per_token_and_layer = model.kv_bytes_per_token_and_layer;
  // The logits are by far the largest activation.
  costs.activation_bytes_per_token = std::int64_t{model.vocab_size} * static_cast<std::int64_t>(sizeof(float));
  const Result<CacheSize> size =
      solve_cache_size(costs, {.num_blocks = 0, .max_batch_tokens = config.max_batch_tokens}, *budget);
  if (!size) {
    return tl::unexpected(size.error());
  }
  return size->num_blocks;
}

}  // namespace troupe

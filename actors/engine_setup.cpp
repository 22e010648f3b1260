#include "actors/engine_setup.hpp"

#include <string>

#include "cache/host_memory.hpp"
#include "cache/memory_sizing.hpp"

namespace troupe {

Result<void> check_engine_settings(const EngineConfig& config, const ModelDescription& model) {
  if (Result<void> checked = validate(config); !checked) {
    return checked;
  }
  if (model.vocab_size < 1 || model.max_position_embeddings < 1) {
    return fail(ErrorCode::invalid_request,
                "a model needs a vocabulary and a context of at least 1 token, found vocab_size " +
                    std::to_string(model.vocab_size) + " and max_position_embeddings " +
                    std::to_string(model.max_position_embeddings));
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

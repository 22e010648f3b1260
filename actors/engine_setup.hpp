#pragma once

/// What an engine decides before its actors exist.

#include <cstdint>
#include <vector>

#include "actors/engine_config.hpp"
#include "cache/error.hpp"
#include "cache/step_executor.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Checks every setting and the model's description. Error `invalid_request` names the first field that is wrong, its
/// limits and what was found.
[[nodiscard]] Result<void> check_engine_settings(const EngineConfig& config, const ModelDescription& model);

/// `config.num_blocks`, or as many blocks as fit in `config.cache_bytes`, or else in a fraction of the memory that the
/// process may use. To be called when the weights are in memory.
[[nodiscard]] Result<std::int32_t> choose_num_blocks(const EngineConfig& config, const ModelDescription& model,
                                                     const std::vector<LayerGroup>& groups);

}  // namespace troupe

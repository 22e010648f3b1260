#pragma once

#include <cstdint>

#include "model/json_node.hpp"
#include "model/model_config.hpp"

namespace troupe {

/// The rotary embedding of a config.json, in its old spelling (`rope_theta` and `rope_scaling`, with `type` or
/// `rope_type`) or its new one (`rope_parameters`), defaults and precedence as in transformers' `modeling_rope_utils`.
/// A scaling that is unknown or lacks a field is noted as the node's problem.
[[nodiscard]] RopeConfig read_rope(const JsonNode& config, std::int32_t max_position_embeddings);

}  // namespace troupe

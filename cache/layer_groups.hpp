#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Splits a model's layers into groups of one attention type and equal size, so that every block has the same size
/// whatever group takes it. The size is the greatest common divisor of the types' layer counts, as in
/// `group_layers_by_attn_type` of transformers; where that makes more than eight groups, it is the smaller count, and
/// the last group of the other type is filled with padding layers (-1). Types are in order of their first layer, a
/// type's groups are consecutive slices of its layers: S S F S S F becomes S[0 1] S[3 4] F[2 5]. Errors:
/// `invalid_request` if there is no layer, or a sliding layer but no positive window.
[[nodiscard]] Result<std::vector<LayerGroup>> make_layer_groups(std::span<const AttentionType> layer_types,
                                                                std::int32_t sliding_window);

}  // namespace troupe

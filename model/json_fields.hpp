#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "cache/types.hpp"
#include "model/json_node.hpp"

/// What configuration files consist of. Anything else is noted as the node's problem.
namespace troupe {

/// Whether an object has a key; its value may be null, which `JsonNode` does not tell from a missing key.
[[nodiscard]] bool has_key(const JsonNode& object, std::string_view key);

[[nodiscard]] std::int64_t integer_in(const JsonNode& node, std::int64_t min, std::int64_t max);
[[nodiscard]] std::int32_t int32_in(const JsonNode& node, std::int32_t min,
                                    std::int32_t max = std::numeric_limits<std::int32_t>::max());

/// A finite number in [min, max].
[[nodiscard]] double number_in(const JsonNode& node, double min, double max = std::numeric_limits<double>::max());
/// A number above `bound`.
[[nodiscard]] double number_above(const JsonNode& node, double bound);

/// A token id, several in a list, or none (null), each once, in the order given.
[[nodiscard]] std::vector<TokenId> token_ids(const JsonNode& node, std::int32_t vocab_size);

}  // namespace troupe

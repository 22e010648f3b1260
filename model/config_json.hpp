#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"
#include "model/model_config.hpp"

namespace troupe {

/// Reads the text of a Hugging Face config.json. What is absent has transformers' default for the model type.
/// Errors name the field, expected and found: a model type or feature that troupe does not have, sizes out of range.
[[nodiscard]] Result<ModelConfig> parse_config(std::string_view text);

/// What a generation_config.json says of interest here.
struct GenerationConfig {
  GenerationDefaults defaults;
  /// Empty if the file does not name any.
  std::vector<TokenId> eos_token_ids;
};
[[nodiscard]] Result<GenerationConfig> parse_generation_config(std::string_view text, std::int32_t vocab_size);

/// Model types that `parse_config` accepts, as a list for messages.
[[nodiscard]] std::string supported_model_types();

/// Checks what must hold for any decoder, wherever its configuration comes from. Errors name the field as config.json
/// does.
[[nodiscard]] Result<void> check_config(const ModelConfig& config);

}  // namespace troupe

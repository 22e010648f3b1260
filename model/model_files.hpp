#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/error.hpp"
#include "model/model_config.hpp"
#include "model/tokenizer.hpp"
#include "model/weight_source.hpp"

namespace troupe {

/// Everything that a model directory or GGUF file holds, checked and ready to be used; weights stay memory-mapped.
struct ModelFiles {
  std::filesystem::path path;
  ModelConfig config;
  GenerationDefaults generation;
  /// Holds every tensor of `expected_tensors(config)`, of the right shape; never null.
  std::shared_ptr<const WeightSource> weights;
  /// Null if the directory has no tokenizer: such a model serves token ids only.
  std::unique_ptr<Tokenizer> tokenizer;
  /// Jinja source of the chat template, if there is one.
  std::optional<std::string> chat_template;
  /// What was found odd but does no harm (tensors that nothing needs, say), for a person to read.
  std::vector<std::string> warnings;
};

/// Opens a Hugging Face model directory or a .gguf file.
/// Errors name file, key, expected and found; nothing is allocated for a tensor before its header is checked.
[[nodiscard]] Result<ModelFiles> open_model(const std::filesystem::path& path);

}  // namespace troupe

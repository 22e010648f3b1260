#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cache/error.hpp"
#include "model/model_config.hpp"
#include "model/weight_source.hpp"

namespace troupe {

class Tokenizer;

/// Everything that a model directory or GGUF file holds, checked and ready to be used; weights stay memory-mapped.
struct ModelFiles {
  std::filesystem::path path;
  ModelConfig config;
  GenerationDefaults generation;
  std::unique_ptr<WeightSource> weights;
  /// Null if the directory has no tokenizer: such a model serves token ids only.
  std::unique_ptr<Tokenizer> tokenizer;
  /// Jinja source of the chat template, if there is one.
  std::optional<std::string> chat_template;
};

/// Opens a Hugging Face model directory or a .gguf file.
/// Errors name file, key, expected and found; nothing is allocated for a tensor before its header is checked.
[[nodiscard]] Result<ModelFiles> open_model(const std::filesystem::path& path);

}  // namespace troupe

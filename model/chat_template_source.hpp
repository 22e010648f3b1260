#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cache/error.hpp"
#include "model/gguf_file.hpp"

namespace troupe {

/// The source of a Hugging Face directory's chat template: the file chat_template.jinja or, if there is none,
/// tokenizer_config.json's `chat_template`, of several templates the one named "default". Nothing if there is none.
[[nodiscard]] Result<std::optional<std::string>> read_chat_template(const std::filesystem::path& directory);

/// The source of a GGUF file's chat template.
[[nodiscard]] Result<std::optional<std::string>> read_chat_template(const GgufFile& file);

}  // namespace troupe

#pragma once

#include <filesystem>
#include <memory>

#include "cache/error.hpp"
#include "model/gguf_vocabulary.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

/// Reads `tokenizer.json` (and, beside it, `tokenizer_config.json` for BOS and EOS) of a Hugging Face directory.
/// Everything malformed or unsupported is found here, never at the first request.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::filesystem::path& directory);

/// Builds the tokenizer that a GGUF file's metadata describes.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> make_tokenizer(GgufVocabulary vocabulary);

}  // namespace troupe

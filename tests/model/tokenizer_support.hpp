#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/error.hpp"
#include "cache/types.hpp"
#include "model/gguf_vocabulary.hpp"
#include "model/tokenizer.hpp"

namespace troupe::test {

/// The lines of a packed file below tests/golden.
std::vector<nlohmann::json> read_json_lines(const std::string& name);

/// One of the tokenizers below tests/golden/tokenizers.
nlohmann::json base_tokenizer(const std::string& name);

/// What `load_tokenizer` makes of a folder with these files; no tokenizer_config.json if it is empty.
Result<std::unique_ptr<Tokenizer>> load_text(std::string_view tokenizer_json, std::string_view config = "");
/// The same, for a document that is known to be right.
std::unique_ptr<Tokenizer> load_document(const nlohmann::json& document, std::string_view config = "");

/// The vocabulary of a GGUF file.
GgufVocabulary read_vocabulary(const std::filesystem::path& path);

/// Ids of a text; the test fails if there are none.
std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text, bool add_special_tokens = false);

}  // namespace troupe::test

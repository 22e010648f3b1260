#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/error.hpp"
#include "model/vocabulary.hpp"

namespace troupe {

/// A tokenizer.json whose two large parts never become JSON values.
struct TokenizerJson {
  /// The document, but that an object `/model/vocab` and an array `/model/merges` are left empty in it.
  nlohmann::json rest;
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;
};

/// Parses the text of a tokenizer.json. Errors name the place: a byte offset or a JSON pointer.
[[nodiscard]] Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

}  // namespace troupe

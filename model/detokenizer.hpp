#pragma once

#include <span>
#include <string>

#include "model/tokenizer.hpp"

namespace troupe {

/// Turns one request's tokens into text as they come. Every returned piece is valid UTF-8 and the pieces joined equal
/// `Tokenizer::decode` of all ids; a character split over tokens is held back until it is whole.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);

  /// Text that `ids` complete; may be empty.
  [[nodiscard]] std::string push(std::span<const TokenId> ids);
  /// What was held back, made valid; the detokenizer is then empty.
  [[nodiscard]] std::string finish();
};

}  // namespace troupe

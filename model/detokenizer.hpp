#pragma once

#include <memory>
#include <span>
#include <string>

#include "model/tokenizer.hpp"

namespace troupe {

/// Turns one request's tokens into text as they come. Every returned piece is valid UTF-8 and the pieces joined equal
/// `Tokenizer::decode` of all ids; a character split over tokens is held back until it is whole. So is a run of
/// byte-fallback tokens until it ends, for its last byte decides how all of it reads.
class Detokenizer {
 public:
  /// `tokenizer` outlives the detokenizer.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);

  /// Text that `ids` complete; may be empty.
  [[nodiscard]] std::string push(std::span<const TokenId> ids);
  /// What was held back, made valid; the detokenizer is then empty.
  [[nodiscard]] std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::unique_ptr<TokenDecoder> decoder_;
};

}  // namespace troupe

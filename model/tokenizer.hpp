#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Turns the tokens of one sequence into text as they come. Every returned piece is valid UTF-8.
class TokenDecoder {
 public:
  TokenDecoder() = default;
  TokenDecoder(const TokenDecoder&) = delete;
  TokenDecoder& operator=(const TokenDecoder&) = delete;
  TokenDecoder(TokenDecoder&&) = delete;
  TokenDecoder& operator=(TokenDecoder&&) = delete;
  virtual ~TokenDecoder() = default;

  /// Text that is settled by `ids` and those before them; may be empty.
  [[nodiscard]] virtual std::string push(std::span<const TokenId> ids) = 0;
  /// The rest of the text. Nothing may be pushed afterwards.
  [[nodiscard]] virtual std::string finish() = 0;
};

/// Text to token ids and back. Thread-safe after construction.
class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  Tokenizer(Tokenizer&&) = delete;
  Tokenizer& operator=(Tokenizer&&) = delete;
  virtual ~Tokenizer() = default;

  /// Token ids of `text` (UTF-8). Text of special tokens ("<|im_end|>") becomes their ids.
  /// @param add_special_tokens Whether to add what the tokenizer's post-processor adds (a leading BOS, say); false for
  /// a
  ///   rendered chat template.
  [[nodiscard]] virtual Result<std::vector<TokenId>> encode(std::string_view text, bool add_special_tokens) const = 0;

  /// Text of `ids`. Invalid UTF-8 becomes U+FFFD, as in tokenizers.
  [[nodiscard]] virtual std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const = 0;

  /// A decoder whose pieces, joined, are `decode` of all ids; the tokenizer outlives it. By default it joins
  /// `token_bytes`, invalid UTF-8 replaced.
  [[nodiscard]] virtual std::unique_ptr<TokenDecoder> make_decoder(bool skip_special_tokens) const;

  /// Raw bytes that a token stands for, possibly not valid UTF-8 on its own; empty for unknown ids.
  [[nodiscard]] virtual std::string_view token_bytes(TokenId id) const = 0;
  [[nodiscard]] virtual bool is_special(TokenId id) const = 0;
  [[nodiscard]] virtual std::int32_t vocab_size() const = 0;
  [[nodiscard]] virtual std::optional<TokenId> token_to_id(std::string_view token) const = 0;
  /// The token's own spelling, e.g. "<|im_end|>", normalized if it is found in normalized text; empty for unknown ids.
  [[nodiscard]] virtual std::string id_to_token(TokenId id) const = 0;
  [[nodiscard]] virtual std::optional<TokenId> bos_token_id() const = 0;
  [[nodiscard]] virtual std::optional<TokenId> eos_token_id() const = 0;
};

}  // namespace troupe

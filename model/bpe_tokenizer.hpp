#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/error.hpp"
#include "model/added_tokens.hpp"
#include "model/bpe.hpp"
#include "model/normalizer.hpp"
#include "model/pre_tokenizer.hpp"
#include "model/token_decoder.hpp"
#include "model/tokenizer.hpp"
#include "model/vocabulary.hpp"

namespace troupe {

/// What a BPE tokenizer is made of, wherever that was read from.
struct BpeTokenizerParts {
  /// The model's own tokens.
  std::shared_ptr<const Vocabulary> vocabulary;
  std::vector<BpeMerge> merges;
  BpeOptions options;
  /// Tokens found in the text as they are; their ids may lie within or beyond the vocabulary.
  std::vector<AddedToken> added_tokens;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::vector<DecoderStep> decoder;
  /// What `add_special_tokens` puts around a text.
  std::vector<TokenId> prefix;
  std::vector<TokenId> suffix;
  std::optional<TokenId> bos_token_id;
  std::optional<TokenId> eos_token_id;
};

/// Normalizes, cuts and merges as Hugging Face's tokenizers does.
class BpeTokenizer : public Tokenizer {
 public:
  /// Longer texts are refused: merging needs about 50 bytes of memory for each byte of text.
  static constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20U;

  /// Errors: two spellings for one id, an id below the largest without a token, a normalizer that fails on a token.
  /// They name places as in a tokenizer.json.
  [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> make(BpeTokenizerParts parts);

  /// Errors: invalid UTF-8, a text that is too long, or one on which a regular expression gives up.
  [[nodiscard]] Result<std::vector<TokenId>> encode(std::string_view text, bool add_special_tokens) const override;
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const override;
  [[nodiscard]] std::unique_ptr<TokenDecoder> make_decoder(bool skip_special_tokens) const override;
  [[nodiscard]] std::string_view token_bytes(TokenId id) const override;
  [[nodiscard]] bool is_special(TokenId id) const override;
  [[nodiscard]] std::int32_t vocab_size() const override;
  [[nodiscard]] std::optional<TokenId> token_to_id(std::string_view token) const override;
  [[nodiscard]] std::string id_to_token(TokenId id) const override;
  [[nodiscard]] std::optional<TokenId> bos_token_id() const override;
  [[nodiscard]] std::optional<TokenId> eos_token_id() const override;

 private:
  struct Token {
    std::string spelling;
    std::string bytes;
    bool known = false;
    bool special = false;
  };
  class Decoder;

  explicit BpeTokenizer(BpeTokenizerParts parts);
  [[nodiscard]] Result<void> fill_tokens();
  [[nodiscard]] Result<void> fill_matchers();
  [[nodiscard]] Result<void> encode_normalized(PreTokenizedText text, Bpe::Workspace& workspace,
                                               std::vector<TokenId>& ids) const;
  [[nodiscard]] const Token* find(TokenId id) const;

  BpeTokenizerParts parts_;
  Bpe bpe_;
  /// By id.
  std::vector<Token> tokens_;
  /// Ids of added tokens by content.
  std::unordered_map<std::string, TokenId> added_ids_;
  /// Added tokens to find before and after normalization.
  AddedTokenMatcher raw_matcher_;
  AddedTokenMatcher normalized_matcher_;
};

}  // namespace troupe

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cache/error.hpp"
#include "model/regex.hpp"

/// Spellings of tokens back to text, named after the decoders of Hugging Face's tokenizers.
namespace troupe {

/// Byte-level spellings become bytes, all of them together one text.
struct ByteLevelDecoder {};
/// Runs of "<0xNN>" become text, or one U+FFFD for each token if the run is not valid UTF-8.
struct ByteFallbackDecoder {};
/// From here on all tokens are one text.
struct FuseDecoder {};
struct ReplaceDecoder {
  TextPattern pattern;
  std::string content;
};
/// Removes up to `start` and `stop` times `content`, one code point, at the ends of each token or of the whole text.
struct StripDecoder {
  std::string content;
  std::size_t start = 0;
  std::size_t stop = 0;
};
/// Replacements, one code point each, become spaces, or nothing in the first token.
struct MetaspaceDecoder {
  std::string replacement;
  bool drop_in_first_token = true;
};
/// Spaces between tokens: what tokenizers do without a decoder.
struct JoinDecoder {};

using DecoderStep = std::variant<ByteLevelDecoder, ByteFallbackDecoder, FuseDecoder, ReplaceDecoder, StripDecoder,
                                 MetaspaceDecoder, JoinDecoder>;

/// Error: steps in an order that cannot be done token by token, such as a step on tokens after one that joins them.
/// It starts with the step's number.
[[nodiscard]] Result<void> check_decoder(const std::vector<DecoderStep>& steps);

/// What one token stands for on its own, without stripping.
[[nodiscard]] std::string decode_token(const std::vector<DecoderStep>& steps, std::string_view token);

/// Part of a chain that turns spellings into text as they come.
class DecodeStage {
 public:
  DecodeStage() = default;
  DecodeStage(const DecodeStage&) = delete;
  DecodeStage& operator=(const DecodeStage&) = delete;
  DecodeStage(DecodeStage&&) = delete;
  DecodeStage& operator=(DecodeStage&&) = delete;
  virtual ~DecodeStage() = default;

  /// Takes a token or, behind a step that joins them, a fragment of the text.
  virtual void push(std::string_view token) = 0;
  /// Hands on what was held back.
  virtual void finish() = 0;
};

/// A chain of `steps`, which `check_decoder` accepts and which outlive it, that appends to `out`.
[[nodiscard]] std::unique_ptr<DecodeStage> make_decode_chain(const std::vector<DecoderStep>& steps, std::string& out);

}  // namespace troupe

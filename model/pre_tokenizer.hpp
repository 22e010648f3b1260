#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/error.hpp"
#include "model/regex.hpp"

/// How a tokenizer cuts normalized text into the pieces that the model merges within, named after the components of
/// Hugging Face's tokenizers.
namespace troupe {

/// Text and the pieces that are left of it: not empty, ascending, not overlapping.
struct PreTokenizedText {
  std::string text;
  std::vector<TextSpan> pieces;
  /// Whether the first piece starts where the whole input starts.
  bool at_start = false;
};

/// Cuts pieces further or rewrites them; safe to call from several threads.
using PreTokenizer = std::function<Result<void>(PreTokenizedText& text)>;

/// What becomes of a match of the delimiter.
enum class SplitBehavior : std::uint8_t {
  removed,
  /// A piece of its own.
  isolated,
  /// Part of the piece before it.
  merged_with_previous,
  /// Part of the piece after it.
  merged_with_next,
  /// Matches in a row are one piece.
  contiguous,
};

struct SplitOptions {
  SplitBehavior behavior = SplitBehavior::isolated;
  /// Whether what does not match is the delimiter.
  bool invert = false;
};
[[nodiscard]] PreTokenizer split_pre_tokenizer(TextPattern pattern, SplitOptions options);
/// Splits at code points with a property.
[[nodiscard]] PreTokenizer character_pre_tokenizer(bool (*is_delimiter)(char32_t), SplitBehavior behavior);

struct ByteLevelOptions {
  /// Whether a piece that does not start with a space gets one.
  bool add_prefix_space = false;
  /// Splits each piece first; null for none.
  PreTokenizer split;
};
/// Writes every byte as a character of the byte-level alphabet.
[[nodiscard]] PreTokenizer byte_level_pre_tokenizer(ByteLevelOptions options);
/// GPT-2's split into contractions, words, numbers, symbols and space.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Which pieces get the replacement in front.
enum class PrependScheme : std::uint8_t { never, first, always };

struct MetaspaceOptions {
  /// One code point that stands for a space.
  std::string replacement = "\u2581";
  PrependScheme prepend_scheme = PrependScheme::always;
  /// Whether a piece is cut before every replacement.
  bool split = true;
};
[[nodiscard]] PreTokenizer metaspace_pre_tokenizer(const MetaspaceOptions& options);

[[nodiscard]] Result<void> pre_tokenize(const std::vector<PreTokenizer>& pre_tokenizers, PreTokenizedText& text);

}  // namespace troupe

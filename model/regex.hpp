#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/error.hpp"

// Oniguruma's regex object; its header stays out of ours.
struct re_pattern_buffer;

namespace troupe {

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

/// A regular expression in Oniguruma's Ruby syntax over UTF-8, the dialect of Hugging Face's tokenizers. Copies share
/// the compiled form, which searches do not change: any number of threads may search at once.
class Regex {
 public:
  [[nodiscard]] static Result<Regex> compile(std::string_view pattern);

  /// Appends all matches in `text`, left to right, not overlapping. An empty match counts only where no match ended.
  /// Error: the engine's limit on backtracking.
  [[nodiscard]] Result<void> find_all(std::string_view text, std::vector<TextSpan>& matches) const;

 private:
  explicit Regex(std::shared_ptr<re_pattern_buffer> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<re_pattern_buffer> compiled_;
};

/// What "pattern" holds in a tokenizer.json: a literal string, never empty, or a regular expression.
class TextPattern {
 public:
  explicit TextPattern(std::string literal) : literal_(std::move(literal)) {}
  explicit TextPattern(Regex regex) : regex_(std::make_shared<const Regex>(std::move(regex))) {}

  [[nodiscard]] Result<void> find_all(std::string_view text, std::vector<TextSpan>& matches) const;
  /// Replaces every match in `text` by `content`, taken literally.
  [[nodiscard]] Result<void> replace_all(std::string& text, std::string_view content) const;
  /// Whether a match is always exactly one code point, so that it cannot be cut by the border of two fragments.
  [[nodiscard]] bool is_single_code_point() const;

 private:
  std::string literal_;
  std::shared_ptr<const Regex> regex_;
};

}  // namespace troupe

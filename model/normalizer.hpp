#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/error.hpp"
#include "model/regex.hpp"
#include "model/unicode.hpp"

/// What a tokenizer does to text before it splits it, named after the components of Hugging Face's tokenizers.
namespace troupe {

/// Rewrites valid UTF-8 into valid UTF-8; safe to call from several threads.
using Normalizer = std::function<Result<void>(std::string& text)>;

[[nodiscard]] Normalizer unicode_normalizer(NormalizationForm form);
[[nodiscard]] Normalizer lowercase_normalizer();
[[nodiscard]] Normalizer replace_normalizer(TextPattern pattern, std::string content);
/// Puts `prefix` before text that is not empty.
[[nodiscard]] Normalizer prepend_normalizer(std::string prefix);

struct StripSides {
  bool left = true;
  bool right = true;
};
/// Removes white space at the ends.
[[nodiscard]] Normalizer strip_normalizer(StripSides sides);

[[nodiscard]] Result<void> normalize(const std::vector<Normalizer>& normalizers, std::string& text);

}  // namespace troupe

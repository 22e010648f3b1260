#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/error.hpp"

namespace troupe {

/// The property White_Space.
[[nodiscard]] bool is_white_space(char32_t code_point);
/// General categories Nd, Nl, No.
[[nodiscard]] bool is_numeric(char32_t code_point);
/// ASCII punctuation and general categories P*.
[[nodiscard]] bool is_punctuation(char32_t code_point);
/// What `\w` matches: letters, marks, decimal and letter numbers, connectors, joiners.
[[nodiscard]] bool is_word(char32_t code_point);

enum class NormalizationForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// `text`, valid UTF-8, in the given form.
/// Error: more combining marks in a row than any writing has, which would take quadratic time to sort.
[[nodiscard]] Result<std::string> normalize_unicode(std::string_view text, NormalizationForm form);

/// Lower case, code point by code point, without regard to context.
[[nodiscard]] std::string to_lower(std::string_view text);

}  // namespace troupe

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Strings as sequences of code points, stored as valid UTF-8, with the properties that Python's `str` methods use.
namespace troupe::jinja {

/// Offset of the first byte that is not part of valid UTF-8, or npos.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text);
[[nodiscard]] std::size_t count_code_points(std::string_view text);
/// The code point at byte `position`, which is moved past it. `text` must be valid UTF-8.
[[nodiscard]] char32_t next_code_point(std::string_view text, std::size_t& position);
void append_utf8(std::string& text, char32_t code_point);
/// Byte offset of the code point number `index` (at most `length`) in a text of `length` code points.
[[nodiscard]] std::size_t byte_offset(std::string_view text, std::size_t length, std::size_t index);

[[nodiscard]] bool is_space(char32_t code_point);
/// Whether Python's `repr` shows the character itself.
[[nodiscard]] bool is_printable(char32_t code_point);
[[nodiscard]] bool is_alpha(char32_t code_point);
[[nodiscard]] bool is_decimal(char32_t code_point);
[[nodiscard]] bool is_digit(char32_t code_point);
[[nodiscard]] bool is_numeric(char32_t code_point);
[[nodiscard]] bool is_upper(char32_t code_point);
[[nodiscard]] bool is_lower(char32_t code_point);
/// Whether a character has case (upper, lower or title).
[[nodiscard]] bool is_cased(char32_t code_point);

/// Simple case mappings, one code point to one, but for German sharp s, which becomes "SS".
void append_upper(std::string& text, char32_t code_point);
void append_lower(std::string& text, char32_t code_point);
void append_title(std::string& text, char32_t code_point);
[[nodiscard]] std::string to_upper(std::string_view text);
[[nodiscard]] std::string to_lower(std::string_view text);

struct Sides {
  bool left = true;
  bool right = true;
};

/// `text` without the white space at its ends.
[[nodiscard]] std::string_view strip_space(std::string_view text, Sides sides = {});
/// `text` without characters of `set` at its ends.
[[nodiscard]] std::string_view strip_characters(std::string_view text, std::string_view set, Sides sides);

/// Offset of the first `needle` at or after `from`, or npos; linear in time for any input.
[[nodiscard]] std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from = 0);
/// Offset of the last `needle` that ends at or before `end`, or npos; linear in time for any input.
[[nodiscard]] std::size_t find_last_text(std::string_view text, std::string_view needle, std::size_t end);

}  // namespace troupe::jinja

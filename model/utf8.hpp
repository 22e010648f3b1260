#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// A code point and the bytes it takes in UTF-8.
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;
};

/// Decodes the first code point of `text`, which is not empty. A malformed start gives U+FFFD and the size of the
/// part to replace: the longest prefix of a well-formed sequence, at least one byte (Unicode 15, section 3.9).
[[nodiscard]] CodePoint first_code_point(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

/// Offset of the first byte that is not part of valid UTF-8.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Bytes in pieces to valid UTF-8. A character split over pieces is held back until it is whole; what can never become
/// a character turns into U+FFFD, one for each maximal part, as Rust's `String::from_utf8_lossy` does.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string& out);
  void finish(std::string& out);

 private:
  /// The start of a character, at most three bytes.
  std::string pending_;
};

}  // namespace troupe

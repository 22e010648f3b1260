#include "model/error_text.hpp"

#include <cstddef>

namespace troupe {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxBytes = 80;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char character : text.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte > 0x7e) {
      out += "\\x";
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 0xFU];
    } else {
      out += character;
    }
  }
  return out + (text.size() > kMaxBytes ? "...\"" : "\"");
}

std::string to_text(std::span<const std::int64_t> shape) {
  std::string out = "[";
  for (const std::int64_t dimension : shape) {
    out += (out.size() > 1 ? ", " : "") + std::to_string(dimension);
  }
  return out + "]";
}

}  // namespace troupe

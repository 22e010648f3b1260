#include "model/byte_level.hpp"

#include <array>
#include <cstdint>

#include "model/utf8.hpp"

namespace troupe {
namespace {

/// Printable Latin-1 characters stand for themselves; the other bytes, in order, are U+0100 and up (GPT-2's
/// `bytes_to_unicode`).
struct Alphabet {
  std::array<std::uint16_t, 256> character{};
  /// -1 for what is not in the alphabet.
  std::array<std::int16_t, 0x100 + 68> byte{};

  constexpr Alphabet() {
    byte.fill(-1);
    std::uint16_t next = 0x100;
    for (int value = 0; value < 256; ++value) {
      const bool printable = (value >= '!' && value <= '~') || (value >= 0xA1 && value <= 0xFF && value != 0xAD);
      character[value] = printable ? static_cast<std::uint16_t>(value) : next++;
      byte[character[value]] = static_cast<std::int16_t>(value);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    append_utf8(out, kAlphabet.character[static_cast<unsigned char>(byte)]);
  }
}

std::string from_byte_level(std::string_view token) {
  std::string bytes;
  for (std::string_view rest = token; !rest.empty();) {
    const CodePoint point = first_code_point(rest);
    if (point.value >= kAlphabet.byte.size() || kAlphabet.byte[point.value] < 0) {
      return std::string(token);
    }
    bytes += static_cast<char>(kAlphabet.byte[point.value]);
    rest.remove_prefix(point.size);
  }
  return bytes;
}

}  // namespace troupe

#include "model/utf8.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr char32_t kReplacementCharacter = 0xFFFD;

/// What a lead byte allows: the bytes of its sequence and the range of the second one (Unicode 15, table 3-7).
struct Lead {
  std::size_t size = 0;
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

Lead classify(unsigned char byte) {
  if (byte < 0x80) {
    return {.size = 1};
  }
  if (byte < 0xC2 || byte > 0xF4) {
    return {};
  }
  if (byte < 0xE0) {
    return {.size = 2};
  }
  if (byte < 0xF0) {
    return {.size = 3,
            .second_min = static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            .second_max = static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  }
  return {.size = 4,
          .second_min = static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
          .second_max = static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
}

struct Sequence {
  /// Bytes of `text` that can belong to one character.
  std::size_t size = 0;
  /// Bytes that the character needs; 0 if no character starts like this.
  std::size_t needed = 0;
};

Sequence measure(std::string_view text) {
  const Lead lead = classify(static_cast<unsigned char>(text.front()));
  if (lead.size == 0) {
    return {.size = 1, .needed = 0};
  }
  const std::size_t available = std::min(lead.size, text.size());
  std::size_t size = 1;
  for (; size < available; ++size) {
    const auto byte = static_cast<unsigned char>(text[size]);
    const unsigned char min = size == 1 ? lead.second_min : 0x80;
    const unsigned char max = size == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) {
      break;
    }
  }
  return {.size = size, .needed = lead.size};
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const Sequence sequence = measure(text);
  if (sequence.size != sequence.needed) {
    return {.value = kReplacementCharacter, .size = sequence.size};
  }
  const auto first = static_cast<unsigned char>(text.front());
  if (sequence.size == 1) {
    return {.value = first, .size = 1};
  }
  char32_t value = first & (0x7FU >> sequence.size);
  for (std::size_t i = 1; i < sequence.size; ++i) {
    value = (value << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return {.value = value, .size = sequence.size};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0U | (code_point >> 6U));
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0U | (code_point >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code_point >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t position = 0; position < text.size();) {
    const Sequence sequence = measure(text.substr(position));
    if (sequence.size != sequence.needed) {
      return position;
    }
    position += sequence.size;
  }
  return std::nullopt;
}

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  pending_ += bytes;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Sequence sequence = measure(rest);
    if (sequence.size == sequence.needed) {
      out += rest.substr(0, sequence.size);
    } else if (sequence.size == rest.size() && sequence.needed > sequence.size) {
      break;
    } else {
      append_utf8(out, kReplacementCharacter);
    }
    rest.remove_prefix(sequence.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
}

void Utf8Stream::finish(std::string& out) {
  if (!pending_.empty()) {
    append_utf8(out, kReplacementCharacter);
    pending_.clear();
  }
}

}  // namespace troupe

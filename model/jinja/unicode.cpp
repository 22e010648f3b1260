#include "model/jinja/unicode.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_set>

#include <utf8proc.h>

namespace troupe::jinja {
namespace {

constexpr char32_t kSharpS = 0xDF;

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

utf8proc_category_t category(char32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

/// Start of the code point that ends before byte `end`.
std::size_t previous_start(std::string_view text, std::size_t end) {
  do {
    --end;
  } while (end > 0 && is_continuation(text[end]));
  return end;
}

template <class Drop>
std::string_view strip_if(std::string_view text, Sides sides, Drop drop) {
  std::size_t begin = 0;
  while (sides.left && begin < text.size()) {
    std::size_t next = begin;
    if (!drop(next_code_point(text, next))) {
      break;
    }
    begin = next;
  }
  std::size_t end = text.size();
  while (sides.right && end > begin) {
    const std::size_t start = previous_start(text, end);
    std::size_t position = start;
    if (!drop(next_code_point(text, position))) {
      break;
    }
    end = start;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    if (static_cast<unsigned char>(text[position]) < 0x80) {
      ++position;
      continue;
    }
    utf8proc_int32_t code_point = 0;
    // No sequence is longer than four bytes: the cut keeps the length within utf8proc's signed type.
    const std::string_view rest = text.substr(position, 4);
    const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(rest.data()),
                                       static_cast<utf8proc_ssize_t>(rest.size()), &code_point);
    if (size <= 0) {
      return position;
    }
    position += static_cast<std::size_t>(size);
  }
  return std::string_view::npos;
}

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

char32_t next_code_point(std::string_view text, std::size_t& position) {
  const auto lead = static_cast<unsigned char>(text[position]);
  std::size_t size = 1;
  char32_t code_point = lead;
  if (lead >= 0xF0) {
    size = 4;
    code_point = lead & 0x07U;
  } else if (lead >= 0xE0) {
    size = 3;
    code_point = lead & 0x0FU;
  } else if (lead >= 0xC0) {
    size = 2;
    code_point = lead & 0x1FU;
  }
  size = std::min(size, text.size() - position);
  for (std::size_t i = 1; i < size; ++i) {
    code_point = (code_point << 6U) | (static_cast<unsigned char>(text[position + i]) & 0x3FU);
  }
  position += size;
  return code_point;
}

void append_utf8(std::string& text, char32_t code_point) {
  utf8proc_uint8_t bytes[4] = {};  // NOLINT(modernize-avoid-c-arrays): utf8proc's interface
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::size_t byte_offset(std::string_view text, std::size_t length, std::size_t index) {
  if (length == text.size()) {
    return index;
  }
  if (index == length) {
    return text.size();
  }
  std::size_t position = 0;
  while (index > 0) {
    ++position;
    while (position < text.size() && is_continuation(text[position])) {
      ++position;
    }
    --index;
  }
  return position;
}

bool is_space(char32_t c) {
  if (c < 0x80) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  }
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c < 0x7F) {
    return c >= 0x20;
  }
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_LO || is_cased(c);
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT; }

void append_upper(std::string& text, char32_t c) {
  if (c == kSharpS) {
    text += "SS";
    return;
  }
  append_utf8(text, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_lower(std::string& text, char32_t c) {
  append_utf8(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void append_title(std::string& text, char32_t c) {
  if (c == kSharpS) {
    text += "Ss";
    return;
  }
  append_utf8(text, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

std::string to_upper(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    append_upper(result, next_code_point(text, position));
  }
  return result;
}

std::string to_lower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    append_lower(result, next_code_point(text, position));
  }
  return result;
}

std::string_view strip_space(std::string_view text, Sides sides) { return strip_if(text, sides, is_space); }

std::string_view strip_characters(std::string_view text, std::string_view set, Sides sides) {
  std::unordered_set<char32_t> characters;
  for (std::size_t position = 0; position < set.size();) {
    characters.insert(next_code_point(set, position));
  }
  return strip_if(text, sides, [&](char32_t c) { return characters.count(c) > 0; });
}

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) {
    return std::string_view::npos;
  }
  if (needle.empty()) {
    return from;
  }
  // memmem is the two-way algorithm; std::string_view::find is quadratic on hostile input.
  const void* found = ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t find_last_text(std::string_view text, std::string_view needle, std::size_t end) {
  end = std::min(end, text.size());
  const std::string reversed_text(text.rbegin() + static_cast<std::ptrdiff_t>(text.size() - end), text.rend());
  const std::string reversed_needle(needle.rbegin(), needle.rend());
  const std::size_t found = find_text(reversed_text, reversed_needle);
  return found == std::string_view::npos ? found : end - found - needle.size();
}

}  // namespace troupe::jinja

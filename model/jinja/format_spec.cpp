#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "model/jinja/format.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

constexpr std::string_view kAlignments = "<>=^";
/// Digits after the point that a float may be shown with; more than any double has (1074).
constexpr int kMaxPrecision = 1100;

/// A number's parts, so that padding can go between sign and digits.
struct NumberText {
  std::string sign;
  std::string digits;
};

Outcome<std::size_t> parse_size(std::string_view text, std::size_t& position) {
  std::size_t size = 0;
  while (position < text.size() && std::isdigit(static_cast<unsigned char>(text[position])) != 0) {
    size = size * 10 + static_cast<std::size_t>(text[position] - '0');
    if (size > kMaxTextBytes) {
      return fault("format: expected a width of at most " + std::to_string(kMaxTextBytes) + ", found a larger one");
    }
    ++position;
  }
  return size;
}

std::string sign_text(bool negative, char sign) {
  if (negative) {
    return "-";
  }
  return sign == '-' ? "" : std::string(1, sign);
}

std::string in_base(std::uint64_t magnitude, unsigned base, bool upper) {
  const std::string_view digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string text;
  do {
    text += digits[magnitude % base];
    magnitude /= base;
  } while (magnitude > 0);
  std::reverse(text.begin(), text.end());
  return text;
}

void group_digits(std::string& digits, char separator) {
  std::size_t end = digits.find_first_not_of("0123456789");
  end = end == std::string::npos ? digits.size() : end;
  for (std::size_t place = end; place > 3;) {
    place -= 3;
    digits.insert(place, 1, separator);
  }
}

Outcome<NumberText> integer_digits(const FormatSpec& spec, std::int64_t value) {
  const auto magnitude = value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  NumberText text{sign_text(value < 0, spec.sign), {}};
  switch (spec.type) {
    case 'x':
    case 'X':
      text.digits = in_base(magnitude, 16, spec.type == 'X');
      break;
    case 'o':
      text.digits = in_base(magnitude, 8, false);
      break;
    case 'b':
      text.digits = in_base(magnitude, 2, false);
      break;
    default:
      text.digits = std::to_string(magnitude);
      return text;
  }
  if (spec.alternate) {
    text.sign += {'0', spec.type};
  }
  return text;
}

Outcome<NumberText> float_digits(const FormatSpec& spec, double value) {
  const bool percent = spec.type == '%';
  const double shown = percent ? value * 100.0 : value;
  NumberText text{sign_text(std::signbit(shown) && !std::isnan(shown), spec.sign), {}};
  const bool upper = std::isupper(static_cast<unsigned char>(spec.type)) != 0;
  if (!std::isfinite(shown)) {
    text.digits = std::isnan(shown) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
    text.digits += percent ? "%" : "";
    return text;
  }
  if (spec.precision > kMaxPrecision) {
    return fault("format: expected a precision of at most " + std::to_string(kMaxPrecision) + ", found " +
                 std::to_string(spec.precision));
  }
  if (spec.type == 0 && spec.precision < 0) {
    text.digits = float_text(std::abs(shown));
    return text;
  }
  const char type = percent ? 'f' : spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
  const std::string pattern = std::string(spec.alternate ? "%#.*" : "%.*") + type;
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const int size = std::snprintf(nullptr, 0, pattern.c_str(), precision, std::abs(shown));
  text.digits.resize(static_cast<std::size_t>(size) + 1);
  (void)std::snprintf(text.digits.data(), text.digits.size(), pattern.c_str(), precision, std::abs(shown));
  text.digits.pop_back();
  text.digits += percent ? "%" : "";
  return text;
}

std::string repeated(std::string_view fill, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += fill;
  }
  return text;
}

Outcome<std::string> pad(const FormatSpec& spec, char alignment, std::string_view prefix, std::string_view content) {
  const std::size_t length = count_code_points(prefix) + count_code_points(content);
  const std::size_t missing = spec.width > length ? spec.width - length : 0;
  if (auto fits = Runtime::check_text_size(missing * spec.fill.size() + content.size()); !fits) {
    return pass(fits);
  }
  const char align = spec.align == 0 ? alignment : spec.align;
  const std::size_t left = align == '<' || align == '=' ? 0 : align == '^' ? missing / 2 : missing;
  const std::size_t middle = align == '=' ? missing : 0;
  std::string text = repeated(spec.fill, left);
  text += prefix;
  text += repeated(spec.fill, middle);
  text += content;
  return text += repeated(spec.fill, missing - left - middle);
}

Outcome<std::string> format_text(const FormatSpec& spec, std::string_view text) {
  if (spec.precision >= 0) {
    const std::size_t length = count_code_points(text);
    text = text.substr(0, byte_offset(text, length, std::min(length, static_cast<std::size_t>(spec.precision))));
  }
  return pad(spec, '<', "", text);
}

}  // namespace

Outcome<FormatSpec> parse_format_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t position = 0;
  if (!text.empty()) {
    std::size_t after_fill = 0;
    (void)next_code_point(text, after_fill);
    if (after_fill < text.size() && kAlignments.find(text[after_fill]) != std::string_view::npos) {
      spec.fill = text.substr(0, after_fill);
      spec.align = text[after_fill];
      position = after_fill + 1;
    } else if (kAlignments.find(text[0]) != std::string_view::npos) {
      spec.align = text[0];
      position = 1;
    }
  }
  const auto take = [&](char wanted) {
    const bool found = position < text.size() && text[position] == wanted;
    position += found ? 1 : 0;
    return found;
  };
  for (const char sign : {'+', '-', ' '}) {
    if (take(sign)) {
      spec.sign = sign;
      break;
    }
  }
  spec.alternate = take('#');
  if (take('0') && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  }
  auto width = parse_size(text, position);
  if (!width) {
    return pass(width);
  }
  spec.width = *width;
  spec.grouping = take(',') ? ',' : take('_') ? '_' : '\0';
  if (take('.')) {
    auto precision = parse_size(text, position);
    if (!precision) {
      return pass(precision);
    }
    spec.precision = static_cast<int>(*precision);
  }
  if (position + 1 == text.size()) {
    spec.type = text[position++];
  }
  if (position != text.size()) {
    return fault("format: expected a format specification, found '" + std::string(text) + "'");
  }
  return spec;
}

Outcome<std::string> format_value(Runtime& runtime, const FormatSpec& spec, const Value& value) {
  const auto wanted = [&](std::string_view types) {
    return spec.type == 0 || types.find(spec.type) != std::string_view::npos;
  };
  const auto number = [&](Outcome<NumberText> parts) -> Outcome<std::string> {
    if (!parts) {
      return pass(parts);
    }
    if (spec.grouping != 0) {
      group_digits(parts->digits, spec.grouping);
    }
    return pad(spec, '>', parts->sign, parts->digits);
  };
  const bool plain = spec.type == 0 || spec.type == 's';
  if (value.get_if<bool>() == nullptr || !plain) {
    if (const auto integer = as_integer(value)) {
      if (spec.type == 'c') {
        if (*integer < 0 || *integer > 0x10FFFF || (*integer >= 0xD800 && *integer < 0xE000)) {
          return fault("format: expected a code point, found " + std::to_string(*integer));
        }
        std::string character;
        append_utf8(character, static_cast<char32_t>(*integer));
        return pad(spec, '<', "", character);
      }
      if (wanted("dxXobn")) {
        return number(integer_digits(spec, *integer));
      }
    }
  }
  if (const auto shown = as_number(value); shown && value.get_if<bool>() == nullptr && wanted("eEfFgGn%")) {
    return number(float_digits(spec, *shown));
  }
  const bool textual = !as_number(value).has_value() || value.is<bool>();
  if (!plain || !textual) {
    return fault("format: expected a value for '" + std::string(1, spec.type) + "', found " +
                 std::string(value.type_name()));
  }
  auto text = text_of(runtime, value);
  return text ? format_text(spec, *text) : text;
}

}  // namespace troupe::jinja

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/jinja/fault.hpp"
#include "model/jinja/function.hpp"
#include "model/jinja/value.hpp"

namespace troupe::jinja {

/// How one value is laid out: Python's format specification mini-language.
struct FormatSpec {
  std::string fill = " ";
  /// '<', '>', '^', '=' or 0 for the type's own.
  char align = 0;
  /// '-', '+' or ' '.
  char sign = '-';
  bool alternate = false;
  /// ',' or '_' between groups of three digits, or 0.
  char grouping = 0;
  std::size_t width = 0;
  /// -1 if not given.
  int precision = -1;
  /// 0 for the value's own.
  char type = 0;
};

/// Parses "[[fill]align][sign][#][0][width][,][.precision][type]".
[[nodiscard]] Outcome<FormatSpec> parse_format_spec(std::string_view text);
/// Lays `value` out as Python's `format(value, spec)`.
[[nodiscard]] Outcome<std::string> format_value(Runtime& runtime, const FormatSpec& spec, const Value& value);

/// `format % operand`: printf-style formatting.
[[nodiscard]] Outcome<Value> format_percent(Runtime& runtime, const String& format, const Value& operand);
/// `format.format(...)`
[[nodiscard]] Outcome<Value> format_braces(Runtime& runtime, const String& format, const Arguments& arguments);

}  // namespace troupe::jinja

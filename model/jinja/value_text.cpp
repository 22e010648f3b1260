#include "model/jinja/value_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "model/jinja/runtime.hpp"
#include "model/jinja/unicode.hpp"

namespace troupe::jinja {
namespace {

void append_hex(std::string& out, std::string_view prefix, char32_t value, int digits) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += kDigits[(value >> static_cast<unsigned>(shift)) & 0xFU];
  }
}

void append_quoted_character(std::string& out, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == U'\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == U'\n') {
    out += "\\n";
  } else if (c == U'\r') {
    out += "\\r";
  } else if (c == U'\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    append_utf8(out, c);
  } else if (c < 0x100) {
    append_hex(out, "\\x", c, 2);
  } else if (c < 0x10000) {
    append_hex(out, "\\u", c, 4);
  } else {
    append_hex(out, "\\U", c, 8);
  }
}

void append_quoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (std::size_t position = 0; position < text.size();) {
    append_quoted_character(out, next_code_point(text, position), quote);
  }
  out += quote;
}

Outcome<void> append_items(Runtime& runtime, std::string& out, const ListObject& list) {
  if (list.kind == ListKind::generator) {
    out += "<generator>";
    return {};
  }
  const bool tuple = list.kind == ListKind::tuple;
  out += tuple ? '(' : '[';
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    out += i > 0 ? ", " : "";
    if (auto done = append_repr(runtime, out, list.items[i]); !done) {
      return done;
    }
  }
  out += tuple && list.items.size() == 1 ? "," : "";
  out += tuple ? ')' : ']';
  return {};
}

Outcome<void> append_entries(Runtime& runtime, std::string& out, const DictObject& dict) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    out += first ? "" : ", ";
    first = false;
    auto done = append_repr(runtime, out, key);
    if (done) {
      out += ": ";
      done = append_repr(runtime, out, value);
    }
    if (!done) {
      return done;
    }
  }
  out += '}';
  return {};
}

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) {
    return "nan";
  }
  if (std::isinf(number)) {
    return number < 0 ? "-inf" : "inf";
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific);
  const std::string_view shown(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t mark = shown.find('e');
  int exponent = 0;
  const char* const exponent_begin = shown.data() + mark + (shown[mark + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_begin, shown.data() + shown.size(), exponent);
  if (exponent >= -4 && exponent < 16) {
    const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
    std::string text(buffer.data(), fixed.ptr);
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  std::string text(shown.substr(0, mark));
  const int magnitude = std::abs(exponent);
  text += exponent < 0 ? "e-" : "e+";
  text += magnitude < 10 ? "0" : "";
  return text + std::to_string(magnitude);
}

Outcome<void> append_repr(Runtime& runtime, std::string& out, const Value& value) {
  auto ok = runtime.work();
  if (ok) {
    ok = Runtime::check_text_size(out.size());
  }
  if (!ok) {
    return ok;
  }
  if (const auto* text = value.text()) {
    append_quoted(out, *text);
    return {};
  }
  if (const auto* list = value.get_if<List>()) {
    return append_items(runtime, out, **list);
  }
  if (const auto* dict = value.get_if<Dict>()) {
    return append_entries(runtime, out, **dict);
  }
  if (value.is<Undefined>()) {
    out += "Undefined";
    return {};
  }
  return append_text(runtime, out, value);
}

Outcome<void> append_text(Runtime& runtime, std::string& out, const Value& value) {
  if (const auto* text = value.text()) {
    out += *text;
  } else if (const auto* flag = value.get_if<bool>()) {
    out += *flag ? "True" : "False";
  } else if (const auto* integer = value.get_if<std::int64_t>()) {
    out += std::to_string(*integer);
  } else if (const auto* number = value.get_if<double>()) {
    out += float_text(*number);
  } else if (value.is<None>()) {
    out += "None";
  } else if (value.is<List>() || value.is<Dict>()) {
    return append_repr(runtime, out, value);
  } else if (const auto* const* macro = value.get_if<const Macro*>()) {
    out += "<Macro '" + (*macro)->definition->name + "'>";
  } else if (!value.is<Undefined>()) {
    out += "<" + std::string(value.type_name()) + ">";
  }
  return Runtime::check_text_size(out.size());
}

Outcome<std::string> text_of(Runtime& runtime, const Value& value) {
  std::string out;
  if (auto done = append_text(runtime, out, value); !done) {
    return pass(done);
  }
  return out;
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
}

}  // namespace troupe::jinja

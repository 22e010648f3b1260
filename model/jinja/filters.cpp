#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "model/jinja/access.hpp"
#include "model/jinja/function.hpp"
#include "model/jinja/json.hpp"
#include "model/jinja/limits.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/sequence_filters.hpp"
#include "model/jinja/string_methods.hpp"
#include "model/jinja/unicode.hpp"
#include "model/jinja/value_text.hpp"

/// Filters of text, numbers and single values; those of sequences are in sequence_filters.cpp.
namespace troupe::jinja {
namespace {

/// The value if it is a string, else the string that it is shown as.
Outcome<Value> to_text(Runtime& runtime, const Value& value) {
  if (value.is<String>()) {
    return value;
  }
  auto text = text_of(runtime, value);
  return text ? runtime.string(std::move(*text)) : pass(text);
}

/// A filter that is a string's method, applied to the value's text.
template <const char* Method>
Outcome<Value> text_method(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto string = to_text(runtime, self);
  return string ? find_method(*string, Method)->function(runtime, *string, arguments) : string;
}

constexpr char kUpper[] = "upper";
constexpr char kLower[] = "lower";
constexpr char kTitle[] = "title";
constexpr char kCapitalize[] = "capitalize";
constexpr char kStrip[] = "strip";

Outcome<Value> replace(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<3>("replace", arguments, {"old", "new", "count"});
  if (!given) {
    return pass(given);
  }
  const auto [from, to, count] = *given;
  if (from == nullptr || to == nullptr) {
    return fault("replace: expected two strings, found fewer arguments");
  }
  auto limit = integer_or(count == nullptr || count->is<None>() ? nullptr : count, -1, "replace", "count");
  if (!limit) {
    return pass(limit);
  }
  std::array<std::string, 3> texts;
  for (const auto& [value, text] :
       {std::pair(&self, &texts[0]), std::pair(from, &texts[1]), std::pair(to, &texts[2])}) {
    auto shown = text_of(runtime, *value);
    if (!shown) {
      return pass(shown);
    }
    *text = std::move(*shown);
  }
  const Value source = Value::string(std::move(texts[0]));
  return replace_text(runtime, *source.get_if<String>(), texts[1], texts[2], *limit);
}

Outcome<Value> indent(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<3>("indent", arguments, {"width", "first", "blank"});
  if (!given) {
    return pass(given);
  }
  const auto [width, first, blank] = *given;
  std::string prefix(4, ' ');
  if (width != nullptr && width->text() != nullptr) {
    prefix = *width->text();
  } else {
    auto spaces = integer_or(width, 4, "indent", "width");
    if (!spaces) {
      return pass(spaces);
    }
    if (auto fits = Runtime::check_text_size(static_cast<std::uint64_t>(std::max<std::int64_t>(0, *spaces))); !fits) {
      return pass(fits);
    }
    prefix.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, *spaces)), ' ');
  }
  auto text = text_of(runtime, self);
  if (!text) {
    return pass(text);
  }
  text->push_back('\n');  // as jinja2 does, so that an empty text has a line too
  std::string out;
  bool is_first = true;
  for (const std::string_view line : split_lines(*text, false)) {
    const bool indents =
        is_first ? first != nullptr && first->truthy() : !line.empty() || (blank != nullptr && blank->truthy());
    if (auto fits = Runtime::check_text_size(out.size() + prefix.size() + line.size()); !fits) {
      return pass(fits);
    }
    out += is_first ? "" : "\n";
    out += indents ? prefix : "";
    out += line;
    is_first = false;
  }
  return runtime.string(std::move(out));
}

Outcome<Value> to_string(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (auto none = assign_parameters("string", arguments, nullptr, nullptr, 0); !none) {
    return pass(none);
  }
  return to_text(runtime, self);
}

Outcome<Value> safe(Runtime& runtime, const Value& self, const Arguments& /*arguments*/) {
  auto text = text_of(runtime, self);
  return text ? runtime.string(std::move(*text), /*markup=*/true) : pass(text);
}

Outcome<Value> escape(Runtime& runtime, const Value& self, const Arguments& /*arguments*/) {
  const auto* const string = self.get_if<String>();
  if (string != nullptr && string->markup) {
    return self;
  }
  auto text = text_of(runtime, self);
  if (!text) {
    return pass(text);
  }
  std::string escaped;
  append_escaped(escaped, *text);
  return runtime.string(std::move(escaped), /*markup=*/true);
}

Outcome<Value> or_default(const Value* given, Value fallback) {
  return given == nullptr ? std::move(fallback) : *given;
}

Outcome<Value> default_value(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto given = parameters<2>("default", arguments, {"default_value", "boolean"});
  if (!given) {
    return pass(given);
  }
  const auto [fallback, boolean] = *given;
  const bool replaces = self.is<Undefined>() || (boolean != nullptr && boolean->truthy() && !self.truthy());
  if (!replaces) {
    return self;
  }
  return or_default(fallback, Value::string(""));
}

/// The number that the whole of a string is, white space and a plus sign aside.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  text = strip_space(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  T number{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<double> float_from(const Value& value) {
  const std::string* const text = value.text();
  return text != nullptr ? parse_number<double>(*text) : as_number(value);
}

Outcome<Value> to_int(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("int", arguments, {"default"});
  if (!given) {
    return pass(given);
  }
  if (const auto* undefined = self.get_if<Undefined>()) {
    return undefined_fault(*undefined);
  }
  const auto integer = self.text() != nullptr ? parse_number<std::int64_t>(*self.text()) : as_integer(self);
  if (integer) {
    return Value(*integer);
  }
  const auto number = float_from(self);
  constexpr double kLimit = 9.2e18;
  return number && std::abs(*number) < kLimit ? Value(static_cast<std::int64_t>(*number))
                                              : or_default((*given)[0], std::int64_t{0});
}

Outcome<Value> to_float(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("float", arguments, {"default"});
  if (!given) {
    return pass(given);
  }
  if (const auto* undefined = self.get_if<Undefined>()) {
    return undefined_fault(*undefined);
  }
  const auto number = float_from(self);
  return number ? Value(*number) : or_default((*given)[0], 0.0);
}

Outcome<Value> to_json(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<4>("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  if (!given) {
    return pass(given);
  }
  const auto [ascii, indent_value, separators, sort] = *given;
  JsonStyle style;
  style.ensure_ascii = ascii != nullptr && ascii->truthy();
  style.sort_keys = sort != nullptr && sort->truthy();
  if (indent_value != nullptr && indent_value->text() != nullptr) {
    style.indent = *indent_value->text();
  } else if (indent_value != nullptr && !indent_value->is<None>()) {
    auto spaces = integer_or(indent_value, 0, "tojson", "indent");
    if (!spaces) {
      return pass(spaces);
    }
    if (*spaces > kMaxIndent) {
      return fault("tojson: expected an indent of at most " + std::to_string(kMaxIndent) + ", found " +
                   std::to_string(*spaces));
    }
    style.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(*spaces, 0)), ' ');
  }
  if (style.indent) {
    style.item_separator = ",";
  }
  if (separators != nullptr && !separators->is<None>()) {
    const auto* const pair = separators->get_if<List>();
    if (pair == nullptr || (*pair)->items.size() != 2 || (*pair)->items[0].text() == nullptr ||
        (*pair)->items[1].text() == nullptr) {
      return wrong_type("tojson", "separators", "a pair of strings", *separators);
    }
    style.item_separator = *(*pair)->items[0].text();
    style.key_separator = *(*pair)->items[1].text();
  }
  auto text = json_text(runtime, self, style);
  return text ? runtime.string(std::move(*text)) : pass(text);
}

Outcome<Value> length(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto none = assign_parameters("length", arguments, nullptr, nullptr, 0);
  return none ? length_of(self) : pass(none);
}

constexpr auto kFilters = std::to_array<Builtin>({{"capitalize", text_method<kCapitalize>},
                                                  {"count", length},
                                                  {"d", default_value},
                                                  {"default", default_value},
                                                  {"e", escape},
                                                  {"escape", escape},
                                                  {"float", to_float},
                                                  {"indent", indent},
                                                  {"int", to_int},
                                                  {"length", length},
                                                  {"lower", text_method<kLower>},
                                                  {"replace", replace},
                                                  {"safe", safe},
                                                  {"string", to_string},
                                                  {"title", text_method<kTitle>},
                                                  {"tojson", to_json},
                                                  {"trim", text_method<kStrip>},
                                                  {"upper", text_method<kUpper>}});

}  // namespace

const Builtin* find_filter(std::string_view name) {
  const Builtin* const found = find_builtin(kFilters, name);
  return found != nullptr ? found : find_sequence_filter(name);
}

}  // namespace troupe::jinja

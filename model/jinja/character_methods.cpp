#include <algorithm>

#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/string_methods.hpp"
#include "model/jinja/unicode.hpp"

namespace troupe::jinja {
namespace {

const String& self_string(const Value& self) { return *self.get_if<String>(); }

Outcome<void> no_arguments(std::string_view method, const Arguments& arguments) {
  return assign_parameters(method, arguments, nullptr, nullptr, 0);
}

/// Appends the character after `previous` to `out`, changed.
using ChangeCharacter = void (*)(std::string& out, char32_t previous, char32_t character);

template <ChangeCharacter Change>
Outcome<Value> change_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (auto none = no_arguments("a case method", arguments); !none) {
    return pass(none);
  }
  const String& string = self_string(self);
  std::string out;
  out.reserve(string.text().size());
  char32_t previous = 0;
  for (std::size_t position = 0; position < string.text().size();) {
    const char32_t character = next_code_point(string.text(), position);
    Change(out, previous, character);
    previous = character;
  }
  return runtime.string(std::move(out), string.markup);
}

void change_to_upper(std::string& out, char32_t /*previous*/, char32_t c) { append_upper(out, c); }
void change_to_lower(std::string& out, char32_t /*previous*/, char32_t c) { append_lower(out, c); }

void change_to_title(std::string& out, char32_t previous, char32_t c) {
  if (previous != 0 && is_cased(previous)) {
    append_lower(out, c);
  } else {
    append_title(out, c);
  }
}

void change_to_sentence(std::string& out, char32_t /*previous*/, char32_t c) {
  if (out.empty()) {
    append_title(out, c);
  } else {
    append_lower(out, c);
  }
}

void swap_case(std::string& out, char32_t /*previous*/, char32_t c) {
  if (is_upper(c)) {
    append_lower(out, c);
  } else {
    append_upper(out, c);
  }
}

using Predicate = bool (*)(char32_t);

/// Whether the string is not empty and all of its characters are of a kind.
template <Predicate Holds>
Outcome<Value> all_are(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  if (auto none = no_arguments("a character test", arguments); !none) {
    return pass(none);
  }
  const std::string_view text = self_string(self).text();
  bool all = !text.empty();
  for (std::size_t position = 0; all && position < text.size();) {
    all = Holds(next_code_point(text, position));
  }
  return Value(all);
}

bool is_alphanumeric(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_ascii(char32_t c) { return c < 0x80; }

/// Whether there are characters with case and all of them are of the wanted one.
template <Predicate Wanted>
Outcome<Value> has_case(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  if (auto none = no_arguments("a case test", arguments); !none) {
    return pass(none);
  }
  const std::string_view text = self_string(self).text();
  bool any = false;
  for (std::size_t position = 0; position < text.size();) {
    const char32_t c = next_code_point(text, position);
    if (is_cased(c)) {
      if (!Wanted(c)) {
        return Value(false);
      }
      any = true;
    }
  }
  return Value(any);
}

/// Python's odd rule: with an odd number of fill characters the left side gets one more if the width is odd too.
std::size_t left_of_center(std::size_t missing, std::size_t width) { return missing / 2 + (missing & width & 1U); }
std::size_t left_for_rjust(std::size_t missing, std::size_t /*width*/) { return missing; }
std::size_t left_for_ljust(std::size_t /*missing*/, std::size_t /*width*/) { return 0; }

using LeftShare = std::size_t (*)(std::size_t missing, std::size_t width);

template <LeftShare Left>
Outcome<Value> justify(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<2>("center", arguments, {"width", "fillchar"});
  auto width = given ? integer_or((*given)[0], 0, "center", "width") : Outcome<std::int64_t>(pass(given));
  if (!width) {
    return pass(width);
  }
  const String& string = self_string(self);
  const Value* const fill_value = (*given)[1];
  const String* const fill = fill_value == nullptr ? nullptr : fill_value->get_if<String>();
  if (fill_value != nullptr && (fill == nullptr || fill->object->length != 1)) {
    return wrong_type("center", "fillchar", "one character", *fill_value);
  }
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(*width, 0));
  const std::size_t missing = wanted > string.object->length ? wanted - string.object->length : 0;
  const std::string unit = fill == nullptr ? " " : fill->text();
  if (missing > kMaxTextBytes / unit.size()) {
    return fault("center: expected a width of at most " + std::to_string(kMaxTextBytes) + ", found " +
                 std::to_string(*width));
  }
  const std::size_t left = Left(missing, wanted);
  std::string out;
  for (std::size_t i = 0; i < missing; ++i) {
    if (i == left) {
      out += string.text();
    }
    out += unit;
  }
  if (left == missing) {
    out += string.text();
  }
  return runtime.string(std::move(out), string.markup);
}

Outcome<Value> zfill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("zfill", arguments, {"width"});
  auto width = given ? integer_or((*given)[0], 0, "zfill", "width") : Outcome<std::int64_t>(pass(given));
  if (!width) {
    return pass(width);
  }
  const String& string = self_string(self);
  const auto length = static_cast<std::int64_t>(string.object->length);
  const auto missing = static_cast<std::uint64_t>(std::max<std::int64_t>(*width - length, 0));
  if (auto fits = Runtime::check_text_size(missing); !fits) {
    return pass(fits);
  }
  std::string out = string.text();
  const bool has_sign = !out.empty() && (out[0] == '-' || out[0] == '+');
  out.insert(has_sign ? 1 : 0, missing, '0');
  return runtime.string(std::move(out), string.markup);
}

constexpr auto kMethods = std::to_array<Builtin>({
    {"upper", change_case<change_to_upper>},
    {"lower", change_case<change_to_lower>},
    {"casefold", change_case<change_to_lower>},
    {"title", change_case<change_to_title>},
    {"capitalize", change_case<change_to_sentence>},
    {"swapcase", change_case<swap_case>},
    {"isalpha", all_are<is_alpha>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isnumeric", all_are<is_numeric>},
    {"isspace", all_are<is_space>},
    {"isascii", all_are<is_ascii>},
    {"isupper", has_case<is_upper>},
    {"islower", has_case<is_lower>},
    {"center", justify<left_of_center>},
    {"rjust", justify<left_for_rjust>},
    {"ljust", justify<left_for_ljust>},
    {"zfill", zfill},
});

}  // namespace

const Builtin* find_character_method(std::string_view name) { return find_builtin(kMethods, name); }

}  // namespace troupe::jinja

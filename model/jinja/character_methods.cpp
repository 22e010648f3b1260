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

constexpr auto kMethods = std::to_array<Builtin>({
    {"upper", change_case<change_to_upper>},
    {"lower", change_case<change_to_lower>},
    {"title", change_case<change_to_title>},
    {"capitalize", change_case<change_to_sentence>},
    {"isalpha", all_are<is_alpha>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isdigit", all_are<is_digit>},
    {"isspace", all_are<is_space>},
    {"isupper", has_case<is_upper>},
    {"islower", has_case<is_lower>},
});

}  // namespace

const Builtin* find_character_method(std::string_view name) { return find_builtin(kMethods, name); }

}  // namespace troupe::jinja

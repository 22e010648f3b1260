#pragma once

#include <string>
#include <string_view>

#include "model/jinja/fault.hpp"
#include "model/jinja/value.hpp"

namespace troupe::jinja {

class Runtime;

/// Python's repr of a float: the shortest digits that give the number back.
[[nodiscard]] std::string float_text(double number);
/// Appends Python's `str(value)`.
[[nodiscard]] Outcome<void> append_text(Runtime& runtime, std::string& out, const Value& value);
/// Appends Python's `repr(value)`.
[[nodiscard]] Outcome<void> append_repr(Runtime& runtime, std::string& out, const Value& value);
/// Python's `str(value)`.
[[nodiscard]] Outcome<std::string> text_of(Runtime& runtime, const Value& value);
/// Appends `text` with the characters that mean something in HTML replaced.
void append_escaped(std::string& out, std::string_view text);

}  // namespace troupe::jinja

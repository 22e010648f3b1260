#pragma once

#include "model/jinja/fault.hpp"
#include "model/jinja/function.hpp"
#include "model/jinja/value.hpp"

/// Python's two ways of formatting strings, as far as chat templates use them.
namespace troupe::jinja {

class Runtime;

/// `format % operand` with the conversions %s, %r, %d, %i and %%, each also as %(name)s. No flags, no widths.
[[nodiscard]] Outcome<Value> format_percent(Runtime& runtime, const String& format, const Value& operand);
/// `format.format(...)` with the fields {}, {0} and {name}. No attributes, conversions or format specifications.
[[nodiscard]] Outcome<Value> format_braces(Runtime& runtime, const String& format, const Arguments& arguments);

}  // namespace troupe::jinja

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/jinja/ast.hpp"
#include "model/jinja/fault.hpp"
#include "model/jinja/value.hpp"

/// Python's operators.
namespace troupe::jinja {

class Runtime;

/// The value of an int or bool.
[[nodiscard]] std::optional<std::int64_t> as_integer(const Value& value);
/// The value of an int, bool or float.
[[nodiscard]] std::optional<double> as_number(const Value& value);
/// The error of using an undefined value.
[[nodiscard]] tl::unexpected<Fault> undefined_fault(const Undefined& undefined);

[[nodiscard]] Outcome<Value> apply_binary(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right);
/// `-value` and `+value`.
[[nodiscard]] Outcome<Value> apply_sign(UnaryOperator op, const Value& value);

[[nodiscard]] Outcome<bool> equal(Runtime& runtime, const Value& left, const Value& right);
/// `left < right`.
[[nodiscard]] Outcome<bool> less(Runtime& runtime, const Value& left, const Value& right);
[[nodiscard]] Outcome<bool> contains(Runtime& runtime, const Value& container, const Value& item);
[[nodiscard]] Outcome<bool> compare(Runtime& runtime, CompareOperator op, const Value& left, const Value& right);

}  // namespace troupe::jinja

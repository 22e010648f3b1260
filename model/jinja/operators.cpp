#include "model/jinja/operators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/jinja/format.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/value_text.hpp"

namespace troupe::jinja {
namespace {

constexpr std::array<std::string_view, 7> kSymbols = {"+", "-", "*", "/", "//", "%", "**"};

tl::unexpected<Fault> unsupported_operands(BinaryOperator op, const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    if (const auto* undefined = side->get_if<Undefined>()) {
      return undefined_fault(*undefined);
    }
  }
  return fault("unsupported operand types for " + std::string(kSymbols.at(static_cast<std::size_t>(op))) + ": " +
               std::string(left.type_name()) + " and " + std::string(right.type_name()));
}

tl::unexpected<Fault> overflow() { return fault("expected an integer of at most 64 bits, found a larger one"); }

Outcome<std::int64_t> integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return overflow();
    }
    exponent >>= 1;
    // The last square may overflow unused.
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      return overflow();
    }
  }
  return result;
}

Outcome<Value> divide_floats(BinaryOperator op, double left, double right) {
  if (right == 0.0) {
    return fault("division by zero");
  }
  if (op == BinaryOperator::divide) {
    return Value(left / right);
  }
  double remainder = std::fmod(left, right);
  if (remainder != 0.0 && (remainder < 0.0) != (right < 0.0)) {
    remainder += right;
  }
  if (op == BinaryOperator::modulo) {
    return Value(remainder == 0.0 ? std::copysign(0.0, right) : remainder);
  }
  return Value(std::floor((left - remainder) / right + 0.5));
}

Outcome<Value> divide_integers(BinaryOperator op, std::int64_t left, std::int64_t right) {
  if (right == 0) {
    return fault("division by zero");
  }
  if (op == BinaryOperator::divide) {
    return Value(static_cast<double>(left) / static_cast<double>(right));
  }
  if (right == -1) {  // the smallest integer divided by -1 has no result
    if (op == BinaryOperator::modulo) {
      return Value(std::int64_t{0});
    }
    return left == std::numeric_limits<std::int64_t>::min() ? Outcome<Value>(overflow()) : Value(-left);
  }
  const std::int64_t remainder = left % right;
  const bool adjust = remainder != 0 && (remainder < 0) != (right < 0);
  if (op == BinaryOperator::modulo) {
    return Value(adjust ? remainder + right : remainder);
  }
  return Value(left / right - (adjust ? 1 : 0));
}

Outcome<Value> apply_integers(BinaryOperator op, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (op) {
    case BinaryOperator::add:
      return __builtin_add_overflow(left, right, &result) ? Outcome<Value>(overflow()) : Value(result);
    case BinaryOperator::subtract:
      return __builtin_sub_overflow(left, right, &result) ? Outcome<Value>(overflow()) : Value(result);
    case BinaryOperator::multiply:
      return __builtin_mul_overflow(left, right, &result) ? Outcome<Value>(overflow()) : Value(result);
    case BinaryOperator::power: {
      if (right < 0) {
        return left == 0 ? Outcome<Value>(fault("division by zero"))
                         : Value(std::pow(static_cast<double>(left), static_cast<double>(right)));
      }
      auto power = integer_power(left, right);
      return power ? Outcome<Value>(Value(*power)) : pass(power);
    }
    default:
      return divide_integers(op, left, right);
  }
}

Outcome<Value> apply_floats(BinaryOperator op, double left, double right) {
  switch (op) {
    case BinaryOperator::add:
      return Value(left + right);
    case BinaryOperator::subtract:
      return Value(left - right);
    case BinaryOperator::multiply:
      return Value(left * right);
    case BinaryOperator::power: {
      const double power = std::pow(left, right);
      if (std::isfinite(left) && std::isfinite(right) && !std::isfinite(power)) {
        return fault("expected a power within the range of floats, found a larger or complex one");
      }
      return Value(power);
    }
    default:
      return divide_floats(op, left, right);
  }
}

/// Python escapes the plain side of a sum with a safe one.
Outcome<Value> add_strings(Runtime& runtime, const String& left, const String& right) {
  if (auto fits = Runtime::check_text_size(left.text().size() + right.text().size()); !fits) {
    return pass(fits);
  }
  std::string text;
  text.reserve(left.text().size() + right.text().size());
  const bool markup = left.markup || right.markup;
  for (const String* side : {&left, &right}) {
    if (markup && !side->markup) {
      append_escaped(text, side->text());
    } else {
      text += side->text();
    }
  }
  return runtime.string(std::move(text), markup);
}

Outcome<Value> add_lists(Runtime& runtime, const ListObject& left, const ListObject& right) {
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return runtime.sequence(std::move(items), left.kind);
}

Outcome<Value> repeat(Runtime& runtime, const Value& sequence, std::int64_t count) {
  const auto times = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  if (const auto* string = sequence.get_if<String>()) {
    const std::uint64_t unit = string->text().size();
    if (unit > 0 && times > kMaxTextBytes / unit) {
      return fault("expected a string of at most " + std::to_string(kMaxTextBytes) + " bytes, found " +
                   std::to_string(times) + " times " + std::to_string(unit) + " bytes");
    }
    std::string text;
    text.reserve(unit * times);
    for (std::uint64_t i = 0; i < times && unit > 0; ++i) {
      text += string->text();
    }
    return runtime.string(std::move(text), string->markup);
  }
  const ListObject& list = **sequence.get_if<List>();
  if (!list.items.empty() && times > kMaxProducedBytes / sizeof(Value) / list.items.size()) {
    return fault("expected a list that fits " + std::to_string(kMaxProducedBytes) + " bytes, found " +
                 std::to_string(times) + " times " + std::to_string(list.items.size()) + " elements");
  }
  if (auto paid = runtime.produce(times * list.items.size() * sizeof(Value)); !paid) {
    return pass(paid);
  }
  std::vector<Value> items;
  for (std::uint64_t i = 0; i < times && !list.items.empty(); ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return runtime.sequence(std::move(items), list.kind);
}

Outcome<Value> apply_sequences(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right) {
  const auto* left_string = left.get_if<String>();
  const auto* right_string = right.get_if<String>();
  const auto* left_list = left.get_if<List>();
  const auto* right_list = right.get_if<List>();
  if (op == BinaryOperator::add && left_string != nullptr && right_string != nullptr) {
    return add_strings(runtime, *left_string, *right_string);
  }
  if (op == BinaryOperator::add && left_list != nullptr && right_list != nullptr &&
      (*left_list)->kind == (*right_list)->kind && (*left_list)->kind != ListKind::generator) {
    return add_lists(runtime, **left_list, **right_list);
  }
  if (op == BinaryOperator::multiply) {
    const bool left_is_sequence = left_string != nullptr || left_list != nullptr;
    const auto count = as_integer(left_is_sequence ? right : left);
    const Value& sequence = left_is_sequence ? left : right;
    if (count && (sequence.is<String>() || sequence.is<List>())) {
      return repeat(runtime, sequence, *count);
    }
  }
  if (op == BinaryOperator::modulo && left_string != nullptr) {
    return format_percent(runtime, *left_string, right);
  }
  return unsupported_operands(op, left, right);
}

}  // namespace

std::optional<std::int64_t> as_integer(const Value& value) {
  if (const auto* integer = value.get_if<std::int64_t>()) {
    return *integer;
  }
  if (const auto* flag = value.get_if<bool>()) {
    return *flag ? 1 : 0;
  }
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto* number = value.get_if<double>()) {
    return *number;
  }
  const auto integer = as_integer(value);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

tl::unexpected<Fault> undefined_fault(const Undefined& undefined) {
  return fault(undefined.message == nullptr ? "a value is undefined" : *undefined.message);
}

Outcome<Value> apply_binary(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right) {
  const auto left_integer = as_integer(left);
  const auto right_integer = as_integer(right);
  if (left_integer && right_integer) {
    return apply_integers(op, *left_integer, *right_integer);
  }
  const auto left_number = as_number(left);
  const auto right_number = as_number(right);
  if (left_number && right_number) {
    return apply_floats(op, *left_number, *right_number);
  }
  return apply_sequences(runtime, op, left, right);
}

Outcome<Value> apply_sign(UnaryOperator op, const Value& value) {
  if (const auto integer = as_integer(value)) {
    if (op == UnaryOperator::plus) {
      return Value(*integer);
    }
    return *integer == std::numeric_limits<std::int64_t>::min() ? Outcome<Value>(overflow()) : Value(-*integer);
  }
  if (const auto* number = value.get_if<double>()) {
    return Value(op == UnaryOperator::plus ? *number : -*number);
  }
  return wrong_type(op == UnaryOperator::plus ? "+" : "-", "the operand", "a number", value);
}

}  // namespace troupe::jinja

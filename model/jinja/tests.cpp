#include <array>
#include <string>

#include "model/jinja/function.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/unicode.hpp"

/// What may stand behind `is`.
namespace troupe::jinja {
namespace {

using Predicate = bool (*)(const Value&);

template <Predicate Holds>
Outcome<Value> check(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto none = assign_parameters("test", arguments, nullptr, nullptr, 0);
  return none ? Outcome<Value>(Value(Holds(self))) : pass(none);
}

bool is_defined(const Value& value) { return !value.is<Undefined>(); }
bool is_undefined(const Value& value) { return value.is<Undefined>(); }
bool is_none(const Value& value) { return value.is<None>(); }
bool is_string(const Value& value) { return value.is<String>(); }
bool is_mapping(const Value& value) { return value.is<Dict>(); }
bool is_boolean(const Value& value) { return value.is<bool>(); }
bool is_true(const Value& value) { return value.is<bool>() && value.truthy(); }
bool is_false(const Value& value) { return value.is<bool>() && !value.truthy(); }
bool is_integer(const Value& value) { return value.is<std::int64_t>(); }
bool is_float(const Value& value) { return value.is<double>(); }
bool is_number(const Value& value) { return as_number(value).has_value(); }
bool is_callable(const Value& value) { return value.is<FunctionRef>() || value.is<const Macro*>(); }
/// jinja2's undefined values can be iterated over and have a length.
bool is_iterable(const Value& value) {
  return value.is<String>() || value.is<List>() || value.is<Dict>() || value.is<Undefined>();
}
bool is_sequence(const Value& value) {
  const auto* const list = value.get_if<List>();
  return is_iterable(value) && (list == nullptr || (*list)->kind != ListKind::generator);
}
bool is_lower_case(const Value& value) {
  return value.text() != nullptr && to_lower(*value.text()) == *value.text() &&
         to_upper(*value.text()) != *value.text();
}
bool is_upper_case(const Value& value) {
  return value.text() != nullptr && to_upper(*value.text()) == *value.text() &&
         to_lower(*value.text()) != *value.text();
}

template <CompareOperator Op>
Outcome<Value> compare_with(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("test", arguments, {"other"});
  if (!given) {
    return pass(given);
  }
  if ((*given)[0] == nullptr) {
    return fault("test: expected a value to compare with, found no argument");
  }
  auto holds = compare(runtime, Op, self, *(*given)[0]);
  return holds ? Outcome<Value>(Value(*holds)) : pass(holds);
}

Outcome<Value> divisible_by(Runtime& /*runtime*/, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("divisibleby", arguments, {"num"});
  if (!given) {
    return pass(given);
  }
  const auto number = as_integer(self);
  const auto divisor = (*given)[0] == nullptr ? std::nullopt : as_integer(*(*given)[0]);
  if (!number || !divisor || *divisor == 0) {
    return fault("divisibleby: expected two integers, the second not 0");
  }
  return Value(*divisor == -1 || *number % *divisor == 0);
}

template <std::int64_t Rest>
Outcome<Value> has_rest(Runtime& /*runtime*/, const Value& self, const Arguments& /*arguments*/) {
  const auto number = as_integer(self);
  return number ? Outcome<Value>(Value((*number & 1) == Rest))
                : wrong_type("odd, even", "the value", "an integer", self);
}

Outcome<Value> same_as(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto given = parameters<1>("sameas", arguments, {"other"});
  if (!given) {
    return pass(given);
  }
  if ((*given)[0] == nullptr || (*given)[0]->storage().index() != self.storage().index()) {
    return Value(false);
  }
  auto same = equal(runtime, self, *(*given)[0]);
  return same ? Outcome<Value>(Value(*same)) : pass(same);
}

constexpr auto kTests = std::to_array<Builtin>({{"!=", compare_with<CompareOperator::not_equal>},
                                                {"<", compare_with<CompareOperator::less>},
                                                {"<=", compare_with<CompareOperator::less_equal>},
                                                {"==", compare_with<CompareOperator::equal>},
                                                {">", compare_with<CompareOperator::greater>},
                                                {">=", compare_with<CompareOperator::greater_equal>},
                                                {"boolean", check<is_boolean>},
                                                {"callable", check<is_callable>},
                                                {"defined", check<is_defined>},
                                                {"divisibleby", divisible_by},
                                                {"eq", compare_with<CompareOperator::equal>},
                                                {"equalto", compare_with<CompareOperator::equal>},
                                                {"even", has_rest<0>},
                                                {"false", check<is_false>},
                                                {"float", check<is_float>},
                                                {"ge", compare_with<CompareOperator::greater_equal>},
                                                {"greaterthan", compare_with<CompareOperator::greater>},
                                                {"gt", compare_with<CompareOperator::greater>},
                                                {"in", compare_with<CompareOperator::in>},
                                                {"integer", check<is_integer>},
                                                {"iterable", check<is_iterable>},
                                                {"le", compare_with<CompareOperator::less_equal>},
                                                {"lessthan", compare_with<CompareOperator::less>},
                                                {"lower", check<is_lower_case>},
                                                {"lt", compare_with<CompareOperator::less>},
                                                {"mapping", check<is_mapping>},
                                                {"ne", compare_with<CompareOperator::not_equal>},
                                                {"none", check<is_none>},
                                                {"number", check<is_number>},
                                                {"odd", has_rest<1>},
                                                {"sameas", same_as},
                                                {"sequence", check<is_sequence>},
                                                {"string", check<is_string>},
                                                {"true", check<is_true>},
                                                {"undefined", check<is_undefined>},
                                                {"upper", check<is_upper_case>}});

}  // namespace

const Builtin* find_test(std::string_view name) { return find_builtin(kTests, name); }

}  // namespace troupe::jinja

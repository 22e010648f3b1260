#include <algorithm>

#include "model/jinja/limits.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/unicode.hpp"

namespace troupe::jinja {
namespace {

tl::unexpected<Fault> not_ordered(const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    if (const auto* undefined = side->get_if<Undefined>()) {
      return undefined_fault(*undefined);
    }
  }
  return fault("expected values that can be ordered, found " + std::string(left.type_name()) + " and " +
               std::string(right.type_name()));
}

Outcome<bool> equal_lists(Runtime& runtime, const ListObject& left, const ListObject& right) {
  if (left.kind != right.kind || left.items.size() != right.items.size()) {
    return false;
  }
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    auto same = equal(runtime, left.items[i], right.items[i]);
    if (!same || !*same) {
      return same;
    }
  }
  return true;
}

Outcome<bool> equal_dicts(Runtime& runtime, const DictObject& left, const DictObject& right) {
  if (left.entries().size() != right.entries().size()) {
    return false;
  }
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.find(key);
    if (other == nullptr) {
      return false;
    }
    auto same = equal(runtime, value, *other);
    if (!same || !*same) {
      return same;
    }
  }
  return true;
}

Outcome<bool> less_lists(Runtime& runtime, const ListObject& left, const ListObject& right) {
  const std::size_t common = std::min(left.items.size(), right.items.size());
  for (std::size_t i = 0; i < common; ++i) {
    auto same = equal(runtime, left.items[i], right.items[i]);
    if (!same) {
      return same;
    }
    if (!*same) {
      return less(runtime, left.items[i], right.items[i]);
    }
  }
  return left.items.size() < right.items.size();
}

}  // namespace

Outcome<bool> equal(Runtime& runtime, const Value& left, const Value& right) {
  if (auto paid = runtime.work(); !paid) {
    return pass(paid);
  }
  const auto left_integer = as_integer(left);
  const auto right_integer = as_integer(right);
  if (left_integer && right_integer) {
    return *left_integer == *right_integer;
  }
  const auto left_number = as_number(left);
  const auto right_number = as_number(right);
  if (left_number || right_number) {
    return left_number && right_number && *left_number == *right_number;
  }
  if (left.storage().index() != right.storage().index()) {
    return false;
  }
  if (const auto* text = left.text()) {
    auto paid = runtime.work(text->size() / kBytesPerStep);
    return paid ? Outcome<bool>(*text == *right.text()) : pass(paid);
  }
  if (const auto* list = left.get_if<List>()) {
    return equal_lists(runtime, **list, **right.get_if<List>());
  }
  if (const auto* dict = left.get_if<Dict>()) {
    return equal_dicts(runtime, **dict, **right.get_if<Dict>());
  }
  if (const auto* space = left.get_if<Namespace*>()) {
    return *space == *right.get_if<Namespace*>();
  }
  if (const auto* macro = left.get_if<const Macro*>()) {
    return *macro == *right.get_if<const Macro*>();
  }
  if (const auto* function = left.get_if<FunctionRef>()) {
    return *function == *right.get_if<FunctionRef>();
  }
  if (const auto* loop = left.get_if<Loop>()) {
    return *loop == *right.get_if<Loop>();
  }
  return true;  // None or Undefined on both sides
}

Outcome<bool> less(Runtime& runtime, const Value& left, const Value& right) {
  if (auto paid = runtime.work(); !paid) {
    return pass(paid);
  }
  const auto left_integer = as_integer(left);
  const auto right_integer = as_integer(right);
  if (left_integer && right_integer) {
    return *left_integer < *right_integer;
  }
  const auto left_number = as_number(left);
  const auto right_number = as_number(right);
  if (left_number && right_number) {
    return *left_number < *right_number;
  }
  const auto* left_text = left.text();
  const auto* right_text = right.text();
  if (left_text != nullptr && right_text != nullptr) {
    auto paid = runtime.work(std::min(left_text->size(), right_text->size()) / kBytesPerStep);
    // The order of UTF-8 bytes is that of code points.
    return paid ? Outcome<bool>(*left_text < *right_text) : pass(paid);
  }
  const auto* left_list = left.get_if<List>();
  const auto* right_list = right.get_if<List>();
  if (left_list != nullptr && right_list != nullptr && (*left_list)->kind == (*right_list)->kind) {
    return less_lists(runtime, **left_list, **right_list);
  }
  return not_ordered(left, right);
}

Outcome<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  if (const auto* text = container.text()) {
    const auto* needle = item.text();
    if (needle == nullptr) {
      return fault("expected a string on the left of 'in' a string, found " + std::string(item.type_name()));
    }
    auto paid = runtime.work(text->size() / kBytesPerStep);
    return paid ? Outcome<bool>(find_text(*text, *needle) != std::string::npos) : pass(paid);
  }
  if (const auto* dict = container.get_if<Dict>()) {
    return (*dict)->find(item) != nullptr;
  }
  if (const auto* list = container.get_if<List>()) {
    for (const Value& element : (*list)->items) {
      auto same = equal(runtime, element, item);
      if (!same || *same) {
        return same;
      }
    }
    return false;
  }
  if (container.is<Undefined>()) {
    return false;
  }
  return fault("expected a string, list or dict on the right of 'in', found " + std::string(container.type_name()));
}

Outcome<bool> compare(Runtime& runtime, CompareOperator op, const Value& left, const Value& right) {
  const auto negated = [](Outcome<bool> outcome) { return outcome.map([](bool flag) { return !flag; }); };
  // `a <= b` is "less or equal" and not "not greater": a NaN is neither.
  const auto or_equal = [&](Outcome<bool> strict) -> Outcome<bool> {
    return !strict || *strict ? strict : equal(runtime, left, right);
  };
  switch (op) {
    case CompareOperator::equal:
      return equal(runtime, left, right);
    case CompareOperator::not_equal:
      return negated(equal(runtime, left, right));
    case CompareOperator::less:
      return less(runtime, left, right);
    case CompareOperator::less_equal:
      return or_equal(less(runtime, left, right));
    case CompareOperator::greater:
      return less(runtime, right, left);
    case CompareOperator::greater_equal:
      return or_equal(less(runtime, right, left));
    case CompareOperator::in:
      return contains(runtime, right, left);
    case CompareOperator::not_in:
      return negated(contains(runtime, right, left));
  }
  return fault("unknown comparison");
}

}  // namespace troupe::jinja

#include <utility>

#include "model/jinja/access.hpp"
#include "model/jinja/interpreter.hpp"
#include "model/jinja/operators.hpp"
#include "model/jinja/value_text.hpp"

/// The interpreter's half that evaluates expressions.
namespace troupe::jinja {

Outcome<Value> Interpreter::evaluate(const Expr& expr) {
  auto entered = enter();
  ++depth_;
  auto value = entered ? std::visit([this](const auto& node) { return value_of(node); }, expr.node)
                       : Outcome<Value>(pass(entered));
  --depth_;
  if (!value && value.error().line == 0) {
    value.error().line = expr.line;
  }
  return value;
}

Outcome<std::vector<Value>> Interpreter::evaluate_all(const std::vector<ExprPtr>& exprs) {
  std::vector<Value> values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) {
    auto value = evaluate(*expr);
    if (!value) {
      return pass(value);
    }
    values.push_back(std::move(*value));
  }
  return values;
}

Outcome<Value> Interpreter::value_of(const Constant& node) { return node.value; }

Outcome<Value> Interpreter::value_of(const Name& node) {
  if (const Value* value = scope_->find(node.symbol)) {
    return *value;
  }
  const std::string& name = program_.names[static_cast<std::size_t>(node.symbol)];
  if (const Builtin* global = find_global(name)) {
    return Value(std::make_shared<const BoundFunction>(BoundFunction{global, None{}}));
  }
  return Value::undefined("'" + name + "' is undefined");
}

Outcome<Value> Interpreter::value_of(const Piped& /*node*/) { return piped_; }

Outcome<Value> Interpreter::value_of(const ListLiteral& node) {
  auto items = evaluate_all(node.items);
  if (!items) {
    return pass(items);
  }
  return runtime_.sequence(std::move(*items), node.tuple ? ListKind::tuple : ListKind::list);
}

Outcome<Value> Interpreter::value_of(const DictLiteral& node) {
  DictObject::Entries entries;
  for (const auto& [key_expr, value_expr] : node.entries) {
    auto key = evaluate(*key_expr);
    auto value = key ? evaluate(*value_expr) : key;
    if (!value) {
      return value;
    }
    entries.emplace_back(std::move(*key), std::move(*value));
  }
  return runtime_.dict(std::move(entries));
}

Outcome<Value> Interpreter::value_of(const GetAttribute& node) {
  auto object = evaluate(*node.object);
  return object ? get_attribute(*object, node.name) : object;
}

Outcome<Value> Interpreter::value_of(const GetItem& node) {
  auto object = evaluate(*node.object);
  auto key = object ? evaluate(*node.key) : object;
  return key ? get_item(runtime_, *object, *key) : key;
}

Outcome<Value> Interpreter::value_of(const GetSlice& node) {
  auto object = evaluate(*node.object);
  if (!object) {
    return object;
  }
  SliceBounds bounds;
  for (const auto& [expr, bound] :
       {std::pair{node.start.get(), &bounds.start}, std::pair{node.stop.get(), &bounds.stop},
        std::pair{node.step.get(), &bounds.step}}) {
    if (expr == nullptr) {
      continue;
    }
    auto value = evaluate(*expr);
    if (!value) {
      return value;
    }
    *bound = as_integer(*value);
    if (!*bound && !value->is<None>()) {
      return wrong_type("slice", "a bound", "an integer", *value);
    }
  }
  return get_slice(runtime_, *object, bounds);
}

Outcome<Value> Interpreter::value_of(const Unary& node) {
  auto operand = evaluate(*node.operand);
  if (!operand) {
    return operand;
  }
  return node.op == UnaryOperator::logical_not ? Value(!operand->truthy()) : apply_sign(node.op, *operand);
}

Outcome<Value> Interpreter::value_of(const Binary& node) {
  auto left = evaluate(*node.left);
  auto right = left ? evaluate(*node.right) : left;
  return right ? apply_binary(runtime_, node.op, *left, *right) : right;
}

Outcome<Value> Interpreter::value_of(const Logical& node) {
  auto left = evaluate(*node.left);
  if (!left || left->truthy() != node.conjunction) {
    return left;
  }
  return evaluate(*node.right);
}

Outcome<Value> Interpreter::value_of(const Concat& node) {
  auto parts = evaluate_all(node.parts);
  if (!parts) {
    return pass(parts);
  }
  std::string text;
  for (const Value& part : *parts) {
    if (auto appended = append_text(runtime_, text, part); !appended) {
      return pass(appended);
    }
  }
  return runtime_.string(std::move(text));
}

Outcome<Value> Interpreter::value_of(const Compare& node) {
  auto left = evaluate(*node.first);
  if (!left) {
    return left;
  }
  for (const auto& [op, expr] : node.rest) {
    auto right = evaluate(*expr);
    auto holds = right ? compare(runtime_, op, *left, *right) : Outcome<bool>(pass(right));
    if (!holds) {
      return pass(holds);
    }
    if (!*holds) {
      return Value(false);
    }
    left = std::move(right);
  }
  return Value(true);
}

Outcome<Value> Interpreter::value_of(const Conditional& node) {
  auto condition = evaluate(*node.condition);
  if (!condition) {
    return condition;
  }
  if (condition->truthy()) {
    return evaluate(*node.yes);
  }
  return node.no == nullptr ? Value::undefined("the inline if has no else and its condition is false")
                            : evaluate(*node.no);
}

Outcome<Value> Interpreter::value_of(const Call& node) {
  auto callee = evaluate(*node.callee);
  auto arguments = callee ? evaluate_arguments(node.arguments) : Outcome<Arguments>(pass(callee));
  return arguments ? call(*callee, std::move(*arguments)) : pass(arguments);
}

Outcome<Value> Interpreter::value_of(const Apply& node) {
  if (node.builtin == nullptr) {
    return fault("expected the name of a filter or test, found '" + node.name + "'");
  }
  auto input = evaluate(*node.input);
  auto arguments = input ? evaluate_arguments(node.arguments) : Outcome<Arguments>(pass(input));
  return arguments ? invoke(runtime_, *node.builtin, *input, *arguments) : pass(arguments);
}

}  // namespace troupe::jinja

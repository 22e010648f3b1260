#include <utility>

#include "model/jinja/access.hpp"
#include "model/jinja/interpreter.hpp"
#include "model/jinja/limits.hpp"
#include "model/jinja/loop.hpp"
#include "model/jinja/value_text.hpp"

/// The interpreter's half that runs statements.
namespace troupe::jinja {

Outcome<std::string> Interpreter::render(const std::unordered_map<std::string, Value>& variables) {
  scope_ = std::make_shared<Scope>();
  for (std::size_t symbol = 0; symbol < program_.names.size(); ++symbol) {
    if (const auto found = variables.find(program_.names[symbol]); found != variables.end()) {
      scope_->variables.emplace(static_cast<Symbol>(symbol), found->second);
    }
  }
  auto done = execute(program_.body);
  return done ? Outcome<std::string>(std::move(out_)) : pass(done);
}

Outcome<void> Interpreter::enter() {
  if (depth_ >= kMaxRunDepth) {
    return fault("expected at most " + std::to_string(kMaxRunDepth) +
                 " nested evaluations, found more; does a macro call itself without end?");
  }
  return runtime_.work();
}

Outcome<Interpreter::Flow> Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    auto flow = execute(statement);
    if (!flow || *flow != Flow::next) {
      return flow;
    }
  }
  return Flow::next;
}

Outcome<Interpreter::Flow> Interpreter::execute(const Statement& statement) {
  auto entered = enter();
  ++depth_;
  auto flow = entered ? std::visit([this](const auto& node) { return run(node); }, statement.node)
                      : Outcome<Flow>(pass(entered));
  --depth_;
  if (!flow && flow.error().line == 0) {
    flow.error().line = statement.line;
  }
  return flow;
}

std::shared_ptr<Scope> Interpreter::new_scope() const { return std::make_shared<Scope>(Scope{scope_, {}}); }

Outcome<Interpreter::Flow> Interpreter::execute_in_scope(const Body& body, std::shared_ptr<Scope> scope) {
  std::swap(scope_, scope);
  auto flow = execute(body);
  std::swap(scope_, scope);
  return flow;
}

Outcome<Interpreter::Flow> Interpreter::run(const Text& node) {
  out_ += node.text;
  auto fits = Runtime::check_text_size(out_.size());
  return fits ? Outcome<Flow>(Flow::next) : pass(fits);
}

Outcome<void> Interpreter::print(const Value& value) { return append_text(runtime_, out_, value); }

Outcome<Interpreter::Flow> Interpreter::run(const Print& node) {
  auto value = evaluate(*node.value);
  auto printed = value ? print(*value) : Outcome<void>(pass(value));
  return printed ? Outcome<Flow>(Flow::next) : pass(printed);
}

Outcome<Interpreter::Flow> Interpreter::run(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    auto value = evaluate(*condition);
    if (!value) {
      return pass(value);
    }
    if (value->truthy()) {
      return execute(body);
    }
  }
  return execute(node.otherwise);
}

Outcome<Interpreter::Flow> Interpreter::run(const For& node) {
  auto iterable = evaluate(*node.iterable);
  auto items = iterable ? iterate(runtime_, *iterable) : Outcome<List>(pass(iterable));
  if (!items) {
    return pass(items);
  }
  LoopState::Accept accept;
  if (node.filter != nullptr) {
    accept = [this, &node, outer = scope_](const Value& item) -> Outcome<bool> {
      std::shared_ptr<Scope> scope = std::exchange(scope_, std::make_shared<Scope>(Scope{outer, {}}));
      auto assigned = assign(node.target, item);
      auto wanted = assigned ? evaluate(*node.filter) : Outcome<Value>(pass(assigned));
      scope_ = std::move(scope);
      return wanted ? Outcome<bool>(wanted->truthy()) : pass(wanted);
    };
  }
  const auto loop = std::make_shared<LoopState>(std::move(*items), std::move(accept));
  auto flow = run_loop(node, *loop, Value(loop));
  loop->finish();
  return flow;
}

Outcome<Interpreter::Flow> Interpreter::run_loop(const For& node, LoopState& loop, const Value& loop_value) {
  bool any = false;
  while (true) {
    auto entered = runtime_.work();
    auto item = entered ? loop.advance() : Outcome<const Value*>(pass(entered));
    if (!item) {
      return pass(item);
    }
    if (*item == nullptr) {
      break;
    }
    any = true;
    auto scope = new_scope();
    scope->variables.insert_or_assign(kLoop, loop_value);
    std::swap(scope_, scope);
    auto assigned = assign(node.target, **item);
    auto flow = assigned ? execute(node.body) : Outcome<Flow>(pass(assigned));
    std::swap(scope_, scope);
    if (!flow) {
      return flow;
    }
    if (*flow == Flow::break_loop) {
      break;
    }
  }
  return any ? Outcome<Flow>(Flow::next) : execute_in_scope(node.otherwise, new_scope());
}

Outcome<Interpreter::Flow> Interpreter::run(const Set& node) {
  auto value = evaluate(*node.value);
  auto assigned = value ? assign(node.target, *value) : Outcome<void>(pass(value));
  return assigned ? Outcome<Flow>(Flow::next) : pass(assigned);
}

Outcome<Interpreter::Flow> Interpreter::capture(const Body& body, const ExprPtr& filters, Value& captured) {
  std::string outer = std::exchange(out_, {});
  auto flow = execute_in_scope(body, new_scope());
  auto text = flow ? runtime_.string(std::move(out_)) : Outcome<Value>(pass(flow));
  out_ = std::move(outer);
  if (text && filters != nullptr) {
    Value outer_piped = std::exchange(piped_, std::move(*text));
    text = evaluate(*filters);
    piped_ = std::move(outer_piped);
  }
  if (!text) {
    return pass(text);
  }
  captured = std::move(*text);
  return flow;
}

Outcome<Interpreter::Flow> Interpreter::run(const SetBlock& node) {
  Value captured;
  auto flow = capture(node.body, node.filters, captured);
  if (!flow || *flow != Flow::next) {
    return flow;
  }
  auto assigned = assign(node.target, captured);
  return assigned ? flow : pass(assigned);
}

Outcome<Interpreter::Flow> Interpreter::run(const FilterBlock& node) {
  Value captured;
  auto flow = capture(node.body, node.filters, captured);
  if (!flow || *flow != Flow::next) {
    return flow;
  }
  auto printed = print(captured);
  return printed ? flow : pass(printed);
}

Outcome<Interpreter::Flow> Interpreter::run(const With& node) {
  auto scope = new_scope();
  for (const auto& [target, expr] : node.assignments) {
    auto value = evaluate(*expr);
    if (!value) {
      return pass(value);
    }
    std::swap(scope_, scope);
    auto assigned = assign(target, *value);
    std::swap(scope_, scope);
    if (!assigned) {
      return pass(assigned);
    }
  }
  return execute_in_scope(node.body, std::move(scope));
}

Outcome<Interpreter::Flow> Interpreter::run(const DefineMacro& node) {
  auto macro = runtime_.macro(node.macro, scope_);
  if (!macro) {
    return pass(macro);
  }
  scope_->variables.insert_or_assign(node.symbol, std::move(*macro));
  return Flow::next;
}

Outcome<Interpreter::Flow> Interpreter::run(const CallBlock& node) {
  const auto& call_node = std::get<Call>(node.call->node);
  auto callee = evaluate(*call_node.callee);
  auto arguments = callee ? evaluate_arguments(call_node.arguments) : Outcome<Arguments>(pass(callee));
  auto caller = arguments ? runtime_.macro(node.caller, scope_) : Outcome<Value>(pass(arguments));
  if (!caller) {
    return pass(caller);
  }
  arguments->keyword.emplace_back("caller", std::move(*caller));
  auto value = call(*callee, std::move(*arguments));
  auto printed = value ? print(*value) : Outcome<void>(pass(value));
  return printed ? Outcome<Flow>(Flow::next) : pass(printed);
}

Outcome<Interpreter::Flow> Interpreter::run(const Break& /*node*/) { return Flow::break_loop; }
Outcome<Interpreter::Flow> Interpreter::run(const Continue& /*node*/) { return Flow::continue_loop; }

Outcome<void> Interpreter::assign(const Target& target, const Value& value) {
  if (target.kind == Target::Kind::name) {
    scope_->variables.insert_or_assign(target.symbol, value);
    return {};
  }
  if (target.kind == Target::Kind::attribute) {
    const Value* const object = scope_->find(target.symbol);
    Namespace* const* const space = object == nullptr ? nullptr : object->get_if<Namespace*>();
    if (space == nullptr) {
      return fault("expected '" + program_.names[static_cast<std::size_t>(target.symbol)] +
                   "' to be a namespace, found " + std::string(object == nullptr ? "nothing" : object->type_name()));
    }
    (*space)->attributes.insert_or_assign(target.attribute, value);
    return {};
  }
  auto items = iterate(runtime_, value);
  if (!items) {
    return pass(items);
  }
  if ((*items)->items.size() != target.parts.size()) {
    return fault("expected " + std::to_string(target.parts.size()) + " values to unpack, found " +
                 std::to_string((*items)->items.size()));
  }
  for (std::size_t i = 0; i < target.parts.size(); ++i) {
    if (auto assigned = assign(target.parts[i], (*items)->items[i]); !assigned) {
      return assigned;
    }
  }
  return {};
}

}  // namespace troupe::jinja

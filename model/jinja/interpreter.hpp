#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "model/jinja/ast.hpp"
#include "model/jinja/fault.hpp"
#include "model/jinja/runtime.hpp"
#include "model/jinja/value.hpp"

namespace troupe::jinja {

/// Renders a program once.
///
/// Every evaluation and statement takes a unit of the runtime's work and a level of depth, so that no template runs for
/// long or overflows the stack.
class Interpreter {
 public:
  /// @param program Must outlive the interpreter, and so must `runtime`.
  Interpreter(const Program& program, Runtime& runtime) : program_(program), runtime_(runtime) {}

  [[nodiscard]] Outcome<std::string> render(const std::unordered_map<std::string, Value>& variables);

 private:
  enum class Flow : std::uint8_t { next, break_loop, continue_loop };

  [[nodiscard]] Outcome<void> enter();

  // Statements
  [[nodiscard]] Outcome<Flow> execute(const Body& body);
  [[nodiscard]] Outcome<Flow> execute(const Statement& statement);
  [[nodiscard]] Outcome<Flow> execute_in_scope(const Body& body, std::shared_ptr<Scope> scope);
  [[nodiscard]] Outcome<Flow> run(const Text& node);
  [[nodiscard]] Outcome<Flow> run(const Print& node);
  [[nodiscard]] Outcome<Flow> run(const If& node);
  [[nodiscard]] Outcome<Flow> run(const For& node);
  [[nodiscard]] Outcome<Flow> run(const Set& node);
  [[nodiscard]] Outcome<Flow> run(const SetBlock& node);
  [[nodiscard]] Outcome<Flow> run(const FilterBlock& node);
  [[nodiscard]] Outcome<Flow> run(const With& node);
  [[nodiscard]] Outcome<Flow> run(const DefineMacro& node);
  [[nodiscard]] Outcome<Flow> run(const CallBlock& node);
  [[nodiscard]] Outcome<Flow> run(const Break& node);
  [[nodiscard]] Outcome<Flow> run(const Continue& node);
  /// The items of a loop, its filter not yet applied.
  [[nodiscard]] Outcome<Flow> run_loop(const For& node, LoopState& loop, const Value& loop_value);
  /// Runs a body in a new scope; what it prints becomes a value, piped through `filters` if there are any.
  [[nodiscard]] Outcome<Flow> capture(const Body& body, const ExprPtr& filters, Value& captured);
  [[nodiscard]] Outcome<void> assign(const Target& target, const Value& value);
  [[nodiscard]] Outcome<void> print(const Value& value);
  [[nodiscard]] std::shared_ptr<Scope> new_scope() const;

  // Expressions
  [[nodiscard]] Outcome<Value> evaluate(const Expr& expr);
  [[nodiscard]] Outcome<std::vector<Value>> evaluate_all(const std::vector<ExprPtr>& exprs);
  [[nodiscard]] Outcome<Value> value_of(const Constant& node);
  [[nodiscard]] Outcome<Value> value_of(const Name& node);
  [[nodiscard]] Outcome<Value> value_of(const Piped& node);
  [[nodiscard]] Outcome<Value> value_of(const ListLiteral& node);
  [[nodiscard]] Outcome<Value> value_of(const DictLiteral& node);
  [[nodiscard]] Outcome<Value> value_of(const GetAttribute& node);
  [[nodiscard]] Outcome<Value> value_of(const GetItem& node);
  [[nodiscard]] Outcome<Value> value_of(const GetSlice& node);
  [[nodiscard]] Outcome<Value> value_of(const Unary& node);
  [[nodiscard]] Outcome<Value> value_of(const Binary& node);
  [[nodiscard]] Outcome<Value> value_of(const Logical& node);
  [[nodiscard]] Outcome<Value> value_of(const Concat& node);
  [[nodiscard]] Outcome<Value> value_of(const Compare& node);
  [[nodiscard]] Outcome<Value> value_of(const Conditional& node);
  [[nodiscard]] Outcome<Value> value_of(const Call& node);
  [[nodiscard]] Outcome<Value> value_of(const Apply& node);

  // Calls
  [[nodiscard]] Outcome<Arguments> evaluate_arguments(const CallArguments& arguments);
  [[nodiscard]] Outcome<Value> call(const Value& callee, Arguments arguments);
  [[nodiscard]] Outcome<Value> call_macro(const Macro& macro, Arguments arguments);
  [[nodiscard]] Outcome<void> bind_parameters(const MacroDefinition& macro, Arguments arguments, Scope& scope);
  [[nodiscard]] Outcome<void> bind_rest(const MacroDefinition& macro, Arguments arguments, Scope& scope);

  const Program& program_;
  Runtime& runtime_;
  std::shared_ptr<Scope> scope_;
  /// What statements print: a render's text, or that of the innermost capture.
  std::string out_;
  Value piped_;
  int depth_ = 0;
};

}  // namespace troupe::jinja

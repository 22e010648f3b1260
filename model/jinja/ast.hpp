#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/jinja/function.hpp"
#include "model/jinja/value.hpp"

/// The parsed template. It is immutable, and several threads may render it at the same time.
namespace troupe::jinja {

/// Index of a variable's name in `Program::names`.
using Symbol = std::int32_t;

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  /// `*values` and `**values`; may be null.
  ExprPtr spread_positional;
  ExprPtr spread_keyword;
};

struct Constant {
  Value value;
};
struct Name {
  Symbol symbol = 0;
};
/// What a filter block or a filtered set block filters: its text.
struct Piped {};
struct ListLiteral {
  std::vector<ExprPtr> items;
  bool tuple = false;
};
struct DictLiteral {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct GetAttribute {
  ExprPtr object;
  std::string name;
};
struct GetItem {
  ExprPtr object;
  ExprPtr key;
};
/// object[start:stop:step]; the bounds may be null.
struct GetSlice {
  ExprPtr object;
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
};
enum class UnaryOperator : std::uint8_t { negate, plus, logical_not };
struct Unary {
  UnaryOperator op = UnaryOperator::negate;
  ExprPtr operand;
};
enum class BinaryOperator : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
struct Binary {
  BinaryOperator op = BinaryOperator::add;
  ExprPtr left;
  ExprPtr right;
};
/// `and` and `or`, which give one of their operands.
struct Logical {
  bool conjunction = true;
  ExprPtr left;
  ExprPtr right;
};
/// a ~ b ~ c
struct Concat {
  std::vector<ExprPtr> parts;
};
enum class CompareOperator : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
/// a < b <= c, as in Python.
struct Compare {
  ExprPtr first;
  std::vector<std::pair<CompareOperator, ExprPtr>> rest;
};
/// yes if condition else no; `no` may be null.
struct Conditional {
  ExprPtr condition;
  ExprPtr yes;
  ExprPtr no;
};
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
/// A filter or a test. `builtin` is null for an unknown one in a branch that may never run, as jinja2 allows.
struct Apply {
  ExprPtr input;
  std::string name;
  const Builtin* builtin = nullptr;
  CallArguments arguments;
};

struct Expr {
  using Node = std::variant<Constant, Name, Piped, ListLiteral, DictLiteral, GetAttribute, GetItem, GetSlice, Unary,
                            Binary, Logical, Concat, Compare, Conditional, Call, Apply>;

  Node node;
  int line = 0;
  /// Levels of expressions, this one included.
  int height = 1;
};

/// What `set`, `for` and `with` assign to.
struct Target {
  enum class Kind : std::uint8_t { name, attribute, tuple };

  Kind kind = Kind::name;
  /// The variable, or the namespace whose attribute is set.
  Symbol symbol = 0;
  std::string attribute;
  std::vector<Target> parts;
};

struct Statement;
using Body = std::vector<Statement>;

struct Text {
  std::string text;
};
struct Print {
  ExprPtr value;
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExprPtr iterable;
  /// May be null.
  ExprPtr filter;
  Body body;
  Body otherwise;
};
struct Set {
  Target target;
  ExprPtr value;
};
/// {% set target | filters %}body{% endset %}; `filters` starts at `Piped` and may be null.
struct SetBlock {
  Target target;
  ExprPtr filters;
  Body body;
};
/// {% filter filters %}body{% endfilter %}
struct FilterBlock {
  ExprPtr filters;
  Body body;
};
/// A scope of its own: `with`, and `generation`, which marks what training computes a loss for.
struct With {
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Body body;
};

struct Parameter {
  Symbol symbol = 0;
  std::string name;
  /// May be null.
  ExprPtr fallback;
};
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  // Whether the body mentions these; only then are they set, and further arguments allowed.
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};
struct DefineMacro {
  Symbol symbol = 0;
  MacroDefinition macro;
};
/// {% call(parameters) call %}body{% endcall %}
struct CallBlock {
  ExprPtr call;
  MacroDefinition caller;
};
struct Break {};
struct Continue {};

struct Statement {
  using Node =
      std::variant<Text, Print, If, For, Set, SetBlock, FilterBlock, With, DefineMacro, CallBlock, Break, Continue>;

  Node node;
  int line = 0;
};

/// Symbols that mean something to the interpreter; every program has them first.
enum ReservedSymbol : Symbol { kLoop = 0, kCaller = 1, kVarargs = 2, kKwargs = 3, kReservedSymbols = 4 };

struct Program {
  Body body;
  std::vector<std::string> names;
};

}  // namespace troupe::jinja

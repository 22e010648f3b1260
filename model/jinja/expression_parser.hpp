#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/jinja/ast.hpp"
#include "model/jinja/fault.hpp"
#include "model/jinja/lexer.hpp"

namespace troupe::jinja {

/// Levels of an expression tree; 0 for none.
[[nodiscard]] int height_of(const ExprPtr& expr);
[[nodiscard]] int height_of(const std::vector<ExprPtr>& exprs);
[[nodiscard]] int height_of(const CallArguments& arguments);

/// Parses expressions with jinja2's grammar and precedence.
///
/// The first fault is kept and moves the parser to the end of the template, where every loop ends. What a parse
/// function returns after a fault is incomplete and only good for being dropped.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens);

 protected:
  /// Counts a level of nesting for as long as it lives; past kMaxNesting it is a fault.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Level(Level&&) = delete;
    Level& operator=(Level&&) = delete;

   private:
    ExpressionParser& parser_;
  };

  [[nodiscard]] bool ok() const { return !fault_.has_value(); }
  void fail_expecting(std::string_view expected);
  void fail_at(int line, std::string message);

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  Token take();
  [[nodiscard]] bool at_symbol(std::string_view symbol, std::size_t ahead = 0) const;
  [[nodiscard]] bool at_name(std::string_view name, std::size_t ahead = 0) const;
  bool take_symbol(std::string_view symbol);
  bool take_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  void expect_kind(Token::Kind kind);
  /// A name, e.g. of a filter. @param what Says what it names.
  std::string expect_identifier(std::string_view what);

  /// Index of a variable's name.
  [[nodiscard]] Symbol symbol_of(const std::string& name);

  [[nodiscard]] ExprPtr expression(bool with_conditional = true);
  /// An expression, or several with commas between them, which are a tuple.
  [[nodiscard]] ExprPtr tuple(bool with_conditional = true);
  /// Filters behind `input`. @param named Whether the first one's `|` is left out, as in {% filter upper %}.
  [[nodiscard]] ExprPtr filters(ExprPtr input, bool named);
  [[nodiscard]] ExprPtr make(int line, int below, Expr::Node node);

  [[nodiscard]] int previous_line() const { return tokens_[position_ == 0 ? 0 : position_ - 1].line; }

  std::optional<Fault> fault_;
  /// The first unknown filter or test that no condition can leave out.
  std::optional<Fault> unknown_;
  Program program_;
  /// Greater than 0 inside of what a condition may leave out: there, an unknown filter is a fault only when it runs.
  int conditional_ = 0;
  /// Which of the reserved symbols have been used as variables.
  std::array<bool, kReservedSymbols> mentioned_{};

 private:
  [[nodiscard]] ExprPtr logical(bool conjunction);
  [[nodiscard]] ExprPtr negation();
  [[nodiscard]] ExprPtr comparison();
  [[nodiscard]] std::optional<CompareOperator> take_comparison();
  [[nodiscard]] ExprPtr sum();
  [[nodiscard]] ExprPtr concatenation();
  [[nodiscard]] ExprPtr product();
  [[nodiscard]] ExprPtr power();
  [[nodiscard]] ExprPtr unary(bool with_filters = true);
  [[nodiscard]] ExprPtr primary();
  [[nodiscard]] ExprPtr name();
  [[nodiscard]] ExprPtr number();
  [[nodiscard]] ExprPtr strings();
  [[nodiscard]] ExprPtr parenthesized();
  [[nodiscard]] ExprPtr list();
  [[nodiscard]] ExprPtr dict();
  [[nodiscard]] ExprPtr postfix(ExprPtr object);
  [[nodiscard]] ExprPtr attribute(ExprPtr object);
  [[nodiscard]] ExprPtr subscript(ExprPtr object);
  [[nodiscard]] ExprPtr call(ExprPtr callee);
  [[nodiscard]] CallArguments call_arguments();
  [[nodiscard]] ExprPtr filter(ExprPtr input);
  [[nodiscard]] ExprPtr test(ExprPtr input);
  [[nodiscard]] ExprPtr binary_chain(ExprPtr (ExpressionParser::*operand)(),
                                     std::initializer_list<std::pair<std::string_view, BinaryOperator>> operators);
  [[nodiscard]] const Builtin* known(const Builtin* found, std::string_view kind, const Token& name);

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  int nesting_ = 0;
  std::unordered_map<std::string, Symbol> symbols_;
};

}  // namespace troupe::jinja

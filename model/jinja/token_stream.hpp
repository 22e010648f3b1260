#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/jinja/ast.hpp"
#include "model/jinja/fault.hpp"
#include "model/jinja/lexer.hpp"

namespace troupe::jinja {

/// What the parsers of expressions and statements share: the tokens, the symbols, and how deep they are. A syntax error
/// is thrown as a `Fault`, so that the grammar reads as one; `parse` catches it.
class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, Program& program);

  [[nodiscard]] const Token& current() const { return tokens_[next_]; }
  [[nodiscard]] const Token& ahead() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  Token take() { return next_ + 1 < tokens_.size() ? std::move(tokens_[next_++]) : tokens_.back(); }

  [[nodiscard]] bool is(Token::Kind kind) const { return current().kind == kind; }
  [[nodiscard]] bool is_symbol(std::string_view text) const { return is(Token::Kind::symbol) && current().text == text; }
  [[nodiscard]] bool is_name(std::string_view text) const { return is(Token::Kind::name) && current().text == text; }
  /// Takes the token if it is that one.
  bool skip_symbol(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_symbol(std::string_view text);
  void expect_name(std::string_view text);
  void expect(Token::Kind kind, std::string_view expected);
  std::string take_name(std::string_view expected);

  [[noreturn]] void fail_expecting(std::string_view expected) const;
  [[noreturn]] static void fail_at(int line, std::string message);

  Symbol symbol(const std::string& name);
  /// The macro whose body is being parsed, or nullptr.
  MacroDefinition* macro = nullptr;

  /// Counts a level of nesting for as long as it lives.
  class Level {
   public:
    explicit Level(TokenStream& stream);
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Level(Level&&) = delete;
    Level& operator=(Level&&) = delete;
    ~Level() { --stream_.depth_; }

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  int depth_ = 0;
  Program& program_;
  std::unordered_map<std::string, Symbol> symbols_;
};

/// Which expressions may stand where a tuple may.
struct TupleRules {
  /// Whether `a if b else c` may be an element.
  bool conditional = true;
  /// A name that ends the tuple; empty for none.
  std::string_view end_name = {};
  /// Whether there may be none: the tuple is in parentheses.
  bool may_be_empty = false;
};

[[nodiscard]] ExprPtr parse_expression(TokenStream& stream);
/// One expression, or several with commas as a tuple.
[[nodiscard]] ExprPtr parse_tuple(TokenStream& stream, TupleRules rules = {});
/// `filter(arguments)|filter...` applied to `input`.
[[nodiscard]] ExprPtr parse_filters(TokenStream& stream, ExprPtr input);
/// What stands before any filter or test.
[[nodiscard]] ExprPtr parse_unary(TokenStream& stream, bool with_filters = true);

template <class Node>
[[nodiscard]] ExprPtr make_expr(Node node, int line, int height) {
  return std::make_unique<const Expr>(Expr{std::move(node), line, height});
}

}  // namespace troupe::jinja

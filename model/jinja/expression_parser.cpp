#include "model/jinja/expression_parser.hpp"

#include <algorithm>

#include "model/jinja/limits.hpp"

namespace troupe::jinja {
namespace {

std::string shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::text:
      return "text";
    case Token::Kind::print_begin:
      return "{{";
    case Token::Kind::print_end:
      return "}}";
    case Token::Kind::block_begin:
      return "{%";
    case Token::Kind::block_end:
      return "%}";
    case Token::Kind::string:
      return "a string";
    case Token::Kind::end:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace

int height_of(const ExprPtr& expr) { return expr == nullptr ? 0 : expr->height; }

int height_of(const std::vector<ExprPtr>& exprs) {
  int height = 0;
  for (const ExprPtr& expr : exprs) {
    height = std::max(height, height_of(expr));
  }
  return height;
}

int height_of(const CallArguments& arguments) {
  int height = std::max(
      {height_of(arguments.positional), height_of(arguments.spread_positional), height_of(arguments.spread_keyword)});
  for (const auto& [name, value] : arguments.keyword) {
    height = std::max(height, height_of(value));
  }
  return height;
}

ExpressionParser::ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  for (const char* const reserved : {"loop", "caller", "varargs", "kwargs"}) {
    (void)symbol_of(reserved);
  }
}

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting && parser_.ok()) {
    parser_.fail_at(parser_.peek().line, "expected at most " + std::to_string(kMaxNesting) + " levels, found more");
  }
}

void ExpressionParser::fail_at(int line, std::string message) {
  if (ok()) {
    fault_ = Fault{std::move(message), line, false};
    position_ = tokens_.size() - 1;
  }
}

void ExpressionParser::fail_expecting(std::string_view expected) {
  fail_at(peek().line, "expected " + std::string(expected) + ", found " + shown(peek()));
}

const Token& ExpressionParser::peek(std::size_t ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

Token ExpressionParser::take() {
  Token token = peek();
  position_ = std::min(position_ + 1, tokens_.size() - 1);
  return token;
}

bool ExpressionParser::at_symbol(std::string_view symbol, std::size_t ahead) const {
  return peek(ahead).kind == Token::Kind::symbol && peek(ahead).text == symbol;
}

bool ExpressionParser::at_name(std::string_view name, std::size_t ahead) const {
  return peek(ahead).kind == Token::Kind::name && peek(ahead).text == name;
}

bool ExpressionParser::take_symbol(std::string_view symbol) {
  const bool found = at_symbol(symbol);
  if (found) {
    take();
  }
  return found;
}

bool ExpressionParser::take_name(std::string_view name) {
  const bool found = at_name(name);
  if (found) {
    take();
  }
  return found;
}

void ExpressionParser::expect_symbol(std::string_view symbol) {
  if (!take_symbol(symbol)) {
    fail_expecting("'" + std::string(symbol) + "'");
  }
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!take_name(name)) {
    fail_expecting("'" + std::string(name) + "'");
  }
}

void ExpressionParser::expect_kind(Token::Kind kind) {
  if (peek().kind != kind) {
    fail_expecting(shown(Token{kind, "", 0}));
  }
  take();
}

std::string ExpressionParser::expect_identifier(std::string_view what) {
  if (peek().kind != Token::Kind::name) {
    fail_expecting(what);
  }
  return take().text;
}

Symbol ExpressionParser::symbol_of(const std::string& name) {
  const auto [place, added] = symbols_.emplace(name, static_cast<Symbol>(program_.names.size()));
  if (added) {
    program_.names.push_back(name);
  }
  return place->second;
}

ExprPtr ExpressionParser::make(int line, int below, Expr::Node node) {
  if (below >= kMaxTreeHeight) {
    fail_at(line, "expected an expression of at most " + std::to_string(kMaxTreeHeight) + " levels, found more");
  }
  return std::make_unique<const Expr>(Expr{std::move(node), line, below + 1});
}

ExprPtr ExpressionParser::expression(bool with_conditional) {
  const Level level(*this);
  const int line = peek().line;
  const bool had_unknown = unknown_.has_value();
  ExprPtr value = logical(false);
  while (with_conditional && take_name("if")) {
    if (!had_unknown) {
      unknown_.reset();
    }
    ++conditional_;
    ExprPtr condition = logical(false);
    ExprPtr otherwise = take_name("else") ? expression() : nullptr;
    --conditional_;
    const int below = std::max({height_of(value), height_of(condition), height_of(otherwise)});
    value = make(line, below, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExprPtr ExpressionParser::tuple(bool with_conditional) {
  const int line = peek().line;
  std::vector<ExprPtr> items;
  const auto at_end = [this] {
    return peek().kind == Token::Kind::print_end || peek().kind == Token::Kind::block_end || at_symbol(")");
  };
  bool comma = false;
  while (ok() && !at_end()) {
    items.push_back(expression(with_conditional));
    if (!take_symbol(",")) {
      break;
    }
    comma = true;
  }
  if (items.empty()) {
    fail_expecting("an expression");
  }
  if (items.size() == 1 && !comma) {
    return std::move(items[0]);
  }
  const int below = height_of(items);
  return make(line, below, ListLiteral{std::move(items), true});
}

ExprPtr ExpressionParser::logical(bool conjunction) {
  const int line = peek().line;
  const auto operand = [&] { return conjunction ? negation() : logical(true); };
  ExprPtr left = operand();
  while (take_name(conjunction ? "and" : "or")) {
    ExprPtr right = operand();
    const int below = std::max(height_of(left), height_of(right));
    left = make(line, below, Logical{conjunction, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::negation() {
  const int line = peek().line;
  if (!take_name("not")) {
    return comparison();
  }
  const Level level(*this);
  ExprPtr operand = negation();
  const int below = height_of(operand);
  return make(line, below, Unary{UnaryOperator::logical_not, std::move(operand)});
}

std::optional<CompareOperator> ExpressionParser::take_comparison() {
  static constexpr std::array<std::pair<std::string_view, CompareOperator>, 6> kOperators = {
      {{"==", CompareOperator::equal},
       {"!=", CompareOperator::not_equal},
       {"<", CompareOperator::less},
       {"<=", CompareOperator::less_equal},
       {">", CompareOperator::greater},
       {">=", CompareOperator::greater_equal}}};
  for (const auto& [symbol, op] : kOperators) {
    if (take_symbol(symbol)) {
      return op;
    }
  }
  if (take_name("in")) {
    return CompareOperator::in;
  }
  if (at_name("not") && at_name("in", 1)) {
    take();
    take();
    return CompareOperator::not_in;
  }
  return std::nullopt;
}

ExprPtr ExpressionParser::comparison() {
  const int line = peek().line;
  ExprPtr first = sum();
  std::vector<std::pair<CompareOperator, ExprPtr>> rest;
  int below = height_of(first);
  while (const auto op = take_comparison()) {
    rest.emplace_back(*op, sum());
    below = std::max(below, height_of(rest.back().second));
  }
  return rest.empty() ? std::move(first) : make(line, below, Compare{std::move(first), std::move(rest)});
}

ExprPtr ExpressionParser::binary_chain(ExprPtr (ExpressionParser::*operand)(),
                                       std::initializer_list<std::pair<std::string_view, BinaryOperator>> operators) {
  const int line = peek().line;
  ExprPtr left = (this->*operand)();
  while (true) {
    const auto* const found =
        std::find_if(operators.begin(), operators.end(), [this](const auto& op) { return take_symbol(op.first); });
    if (found == operators.end()) {
      return left;
    }
    ExprPtr right = (this->*operand)();
    const int below = std::max(height_of(left), height_of(right));
    left = make(line, below, Binary{found->second, std::move(left), std::move(right)});
  }
}

ExprPtr ExpressionParser::sum() {
  return binary_chain(&ExpressionParser::concatenation, {{"+", BinaryOperator::add}, {"-", BinaryOperator::subtract}});
}

ExprPtr ExpressionParser::concatenation() {
  const int line = peek().line;
  std::vector<ExprPtr> parts;
  parts.push_back(product());
  while (take_symbol("~")) {
    parts.push_back(product());
  }
  if (parts.size() == 1) {
    return std::move(parts[0]);
  }
  const int below = height_of(parts);
  return make(line, below, Concat{std::move(parts)});
}

ExprPtr ExpressionParser::product() {
  return binary_chain(&ExpressionParser::power, {{"*", BinaryOperator::multiply},
                                                 {"/", BinaryOperator::divide},
                                                 {"//", BinaryOperator::floor_divide},
                                                 {"%", BinaryOperator::modulo}});
}

ExprPtr ExpressionParser::power() {
  const int line = peek().line;
  ExprPtr left = unary();
  while (take_symbol("**")) {
    ExprPtr right = unary();
    const int below = std::max(height_of(left), height_of(right));
    left = make(line, below, Binary{BinaryOperator::power, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  const int line = peek().line;
  ExprPtr value;
  if (at_symbol("-") || at_symbol("+")) {
    const Level level(*this);
    const UnaryOperator op = take().text == "-" ? UnaryOperator::negate : UnaryOperator::plus;
    ExprPtr operand = unary(false);
    const int below = height_of(operand);
    value = make(line, below, Unary{op, std::move(operand)});
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  while (with_filters && ok()) {
    if (at_symbol("|")) {
      value = filters(std::move(value), false);
    } else if (at_name("is")) {
      value = test(std::move(value));
    } else if (at_symbol("(")) {
      value = call(std::move(value));
    } else {
      break;
    }
  }
  return value;
}

}  // namespace troupe::jinja

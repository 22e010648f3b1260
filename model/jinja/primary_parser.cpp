#include <algorithm>
#include <charconv>

#include "model/jinja/expression_parser.hpp"
#include "model/jinja/function.hpp"

/// The part of the expression grammar that binds strongest: literals, names, calls, subscripts, filters and tests.
namespace troupe::jinja {

ExprPtr ExpressionParser::primary() {
  switch (peek().kind) {
    case Token::Kind::name:
      return name();
    case Token::Kind::integer:
    case Token::Kind::floating:
      return number();
    case Token::Kind::string:
      return strings();
    default:
      break;
  }
  if (at_symbol("(")) {
    return parenthesized();
  }
  if (at_symbol("[")) {
    return list();
  }
  if (at_symbol("{")) {
    return dict();
  }
  fail_expecting("an expression");
  return nullptr;
}

ExprPtr ExpressionParser::name() {
  const Token token = take();
  if (token.text == "true" || token.text == "True") {
    return make(token.line, 0, Constant{true});
  }
  if (token.text == "false" || token.text == "False") {
    return make(token.line, 0, Constant{false});
  }
  if (token.text == "none" || token.text == "None") {
    return make(token.line, 0, Constant{None{}});
  }
  const Symbol symbol = symbol_of(token.text);
  if (symbol < kReservedSymbols) {
    mentioned_.at(static_cast<std::size_t>(symbol)) = true;
  }
  return make(token.line, 0, Name{symbol});
}

ExprPtr ExpressionParser::number() {
  const Token token = take();
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == Token::Kind::floating) {
    double number = 0.0;
    const auto parsed = std::from_chars(token.text.data(), end, number);
    if (parsed.ec != std::errc()) {
      fail_at(token.line, "expected a number within the range of floats, found " + token.text);
    }
    return make(token.line, 0, Constant{number});
  }
  std::int64_t number = 0;
  const auto parsed = std::from_chars(token.text.data(), end, number);
  if (parsed.ec != std::errc()) {
    fail_at(token.line, "expected an integer of at most 64 bits, found " + token.text);
  }
  return make(token.line, 0, Constant{number});
}

/// Strings next to each other are one string.
ExprPtr ExpressionParser::strings() {
  const int line = peek().line;
  std::string text;
  while (peek().kind == Token::Kind::string) {
    text += take().text;
  }
  return make(line, 0, Constant{Value::string(std::move(text))});
}

ExprPtr ExpressionParser::parenthesized() {
  const int line = take().line;
  if (take_symbol(")")) {
    return make(line, 0, ListLiteral{{}, true});
  }
  ExprPtr value = tuple();
  expect_symbol(")");
  return value;
}

ExprPtr ExpressionParser::list() {
  const int line = take().line;
  std::vector<ExprPtr> items;
  while (ok() && !at_symbol("]")) {
    items.push_back(expression());
    if (!take_symbol(",")) {
      break;
    }
  }
  expect_symbol("]");
  const int below = height_of(items);
  return make(line, below, ListLiteral{std::move(items), false});
}

ExprPtr ExpressionParser::dict() {
  const int line = take().line;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
  int below = 0;
  while (ok() && !at_symbol("}")) {
    ExprPtr key = expression();
    expect_symbol(":");
    ExprPtr value = expression();
    below = std::max({below, height_of(key), height_of(value)});
    entries.emplace_back(std::move(key), std::move(value));
    if (!take_symbol(",")) {
      break;
    }
  }
  expect_symbol("}");
  return make(line, below, DictLiteral{std::move(entries)});
}

ExprPtr ExpressionParser::postfix(ExprPtr object) {
  while (ok()) {
    if (at_symbol(".")) {
      object = attribute(std::move(object));
    } else if (at_symbol("[")) {
      object = subscript(std::move(object));
    } else if (at_symbol("(")) {
      object = call(std::move(object));
    } else {
      break;
    }
  }
  return object;
}

ExprPtr ExpressionParser::attribute(ExprPtr object) {
  const int line = take().line;
  const int below = height_of(object);
  if (peek().kind == Token::Kind::integer) {
    return make(line, below, GetItem{std::move(object), number()});
  }
  return make(line, below, GetAttribute{std::move(object), expect_identifier("the name of an attribute")});
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  const int line = take().line;
  const auto bound = [this]() -> ExprPtr { return at_symbol(":") || at_symbol("]") ? nullptr : expression(); };
  if (at_symbol("]")) {
    fail_expecting("an index");
  }
  ExprPtr start = bound();
  if (!take_symbol(":")) {
    expect_symbol("]");
    const int below = std::max(height_of(object), height_of(start));
    return make(line, below, GetItem{std::move(object), std::move(start)});
  }
  ExprPtr stop = bound();
  ExprPtr step = take_symbol(":") ? bound() : nullptr;
  expect_symbol("]");
  const int below = std::max({height_of(object), height_of(start), height_of(stop), height_of(step)});
  return make(line, below, GetSlice{std::move(object), std::move(start), std::move(stop), std::move(step)});
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  const int line = peek().line;
  CallArguments arguments = call_arguments();
  const int below = std::max(height_of(callee), height_of(arguments));
  return make(line, below, Call{std::move(callee), std::move(arguments)});
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments arguments;
  expect_symbol("(");
  while (ok() && !at_symbol(")")) {
    if (arguments.spread_keyword != nullptr) {
      fail_expecting("')' after **");
    } else if (take_symbol("**")) {
      arguments.spread_keyword = expression();
    } else if (peek().kind == Token::Kind::name && at_symbol("=", 1)) {
      std::string name = take().text;
      take();
      arguments.keyword.emplace_back(std::move(name), expression());
    } else if (arguments.spread_positional != nullptr || !arguments.keyword.empty()) {
      fail_expecting("a keyword argument");
    } else if (take_symbol("*")) {
      arguments.spread_positional = expression();
    } else {
      arguments.positional.push_back(expression());
    }
    if (!take_symbol(",")) {
      break;
    }
  }
  expect_symbol(")");
  return arguments;
}

const Builtin* ExpressionParser::known(const Builtin* found, std::string_view kind, const Token& name) {
  if (found == nullptr && conditional_ == 0 && !unknown_) {
    unknown_ = Fault{"expected the name of a " + std::string(kind) + ", found '" + name.text + "'", name.line};
  }
  return found;
}

ExprPtr ExpressionParser::filters(ExprPtr input, bool named) {
  if (named) {
    input = filter(std::move(input));
  }
  while (take_symbol("|")) {
    input = filter(std::move(input));
  }
  return input;
}

ExprPtr ExpressionParser::filter(ExprPtr input) {
  const Token token = peek();
  std::string name = expect_identifier("the name of a filter");
  const Builtin* const builtin = known(find_filter(name), "filter", token);
  CallArguments arguments = at_symbol("(") ? call_arguments() : CallArguments{};
  const int below = std::max(height_of(input), height_of(arguments));
  return make(token.line, below, Apply{std::move(input), std::move(name), builtin, std::move(arguments)});
}

ExprPtr ExpressionParser::test(ExprPtr input) {
  take();
  const bool negated = take_name("not");
  const Token token = peek();
  std::string name = expect_identifier("the name of a test");
  const Builtin* const builtin = known(find_test(name), "test", token);
  CallArguments arguments;
  const bool operand_follows =
      (peek().kind == Token::Kind::name && !at_name("else") && !at_name("or") && !at_name("and") && !at_name("is")) ||
      peek().kind == Token::Kind::string || peek().kind == Token::Kind::integer ||
      peek().kind == Token::Kind::floating || at_symbol("[") || at_symbol("{");
  if (at_symbol("(")) {
    arguments = call_arguments();
  } else if (operand_follows) {
    arguments.positional.push_back(postfix(primary()));
  }
  const int below = std::max(height_of(input), height_of(arguments));
  ExprPtr result = make(token.line, below, Apply{std::move(input), std::move(name), builtin, std::move(arguments)});
  return negated ? make(token.line, below + 1, Unary{UnaryOperator::logical_not, std::move(result)})
                 : std::move(result);
}

}  // namespace troupe::jinja

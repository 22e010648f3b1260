#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "model/jinja/limits.hpp"
#include "model/jinja/token_stream.hpp"

/// The grammar of expressions, a level of precedence to a function, as in jinja2's parser.
namespace troupe::jinja {
namespace {

int height_of(const ExprPtr& expr) { return expr == nullptr ? 0 : expr->height; }

int height_of(const CallArguments& arguments) {
  int height = std::max(height_of(arguments.spread_positional), height_of(arguments.spread_keyword));
  for (const ExprPtr& argument : arguments.positional) {
    height = std::max(height, height_of(argument));
  }
  for (const auto& [name, argument] : arguments.keyword) {
    height = std::max(height, height_of(argument));
  }
  return height;
}

template <class Node>
ExprPtr build(Node node, int line, int operand_height) {
  if (operand_height >= kMaxTreeHeight) {
    TokenStream::fail_at(line, "expected an expression of at most " + std::to_string(kMaxTreeHeight) +
                                   " operations one within the other, found more");
  }
  return make_expr(std::move(node), line, operand_height + 1);
}

ExprPtr constant(Value value, int line) { return build(Constant{std::move(value)}, line, 0); }

ExprPtr parse_or(TokenStream& stream);

ExprPtr parse_integer(const Token& token) {
  std::int64_t value = 0;
  const char* const end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
    TokenStream::fail_at(token.line, "expected an integer of at most 64 bits, found " + token.text);
  }
  return constant(Value(value), token.line);
}

ExprPtr parse_float(const Token& token) {
  double value = 0.0;
  const char* const end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
    TokenStream::fail_at(token.line, "expected a number that a float can hold, found " + token.text);
  }
  return constant(Value(value), token.line);
}

ExprPtr parse_name(TokenStream& stream) {
  const Token token = stream.take();
  if (token.text == "true" || token.text == "True") {
    return constant(Value(true), token.line);
  }
  if (token.text == "false" || token.text == "False") {
    return constant(Value(false), token.line);
  }
  if (token.text == "none" || token.text == "None") {
    return constant(Value(None{}), token.line);
  }
  return build(Name{stream.symbol(token.text)}, token.line, 0);
}

ExprPtr parse_list(TokenStream& stream) {
  const int line = stream.current().line;
  stream.expect_symbol("[");
  ListLiteral list;
  int height = 0;
  while (!stream.is_symbol("]")) {
    list.items.push_back(parse_expression(stream));
    height = std::max(height, height_of(list.items.back()));
    if (!stream.skip_symbol(",")) {
      break;
    }
  }
  stream.expect_symbol("]");
  return build(std::move(list), line, height);
}

ExprPtr parse_dict(TokenStream& stream) {
  const int line = stream.current().line;
  stream.expect_symbol("{");
  DictLiteral dict;
  int height = 0;
  while (!stream.is_symbol("}")) {
    ExprPtr key = parse_expression(stream);
    stream.expect_symbol(":");
    ExprPtr value = parse_expression(stream);
    height = std::max({height, height_of(key), height_of(value)});
    dict.entries.emplace_back(std::move(key), std::move(value));
    if (!stream.skip_symbol(",")) {
      break;
    }
  }
  stream.expect_symbol("}");
  return build(std::move(dict), line, height);
}

ExprPtr parse_primary(TokenStream& stream) {
  const TokenStream::Level level(stream);
  switch (stream.current().kind) {
    case Token::Kind::name:
      return parse_name(stream);
    case Token::Kind::integer:
      return parse_integer(stream.take());
    case Token::Kind::floating:
      return parse_float(stream.take());
    case Token::Kind::string: {
      // Strings side by side are one.
      Token token = stream.take();
      while (stream.is(Token::Kind::string)) {
        token.text += stream.take().text;
      }
      return constant(Value::string(std::move(token.text)), token.line);
    }
    default:
      break;
  }
  if (stream.skip_symbol("(")) {
    ExprPtr inner = parse_tuple(stream, {.may_be_empty = true});
    stream.expect_symbol(")");
    return inner;
  }
  if (stream.is_symbol("[")) {
    return parse_list(stream);
  }
  if (stream.is_symbol("{")) {
    return parse_dict(stream);
  }
  stream.fail_expecting("an expression");
}

CallArguments parse_arguments(TokenStream& stream) {
  stream.expect_symbol("(");
  CallArguments arguments;
  while (!stream.is_symbol(")")) {
    const bool named = stream.is(Token::Kind::name) && stream.ahead().kind == Token::Kind::symbol &&
                       stream.ahead().text == "=";
    if (stream.is_symbol("**") && arguments.spread_keyword == nullptr) {
      (void)stream.take();
      arguments.spread_keyword = parse_expression(stream);
    } else if (stream.is_symbol("*") && arguments.spread_positional == nullptr) {
      (void)stream.take();
      arguments.spread_positional = parse_expression(stream);
    } else if (named) {
      std::string name = stream.take().text;
      stream.expect_symbol("=");
      arguments.keyword.emplace_back(std::move(name), parse_expression(stream));
    } else {
      if (!arguments.keyword.empty() || arguments.spread_keyword != nullptr) {
        stream.fail_expecting("a keyword argument");
      }
      arguments.positional.push_back(parse_expression(stream));
    }
    if (!stream.skip_symbol(",")) {
      break;
    }
  }
  stream.expect_symbol(")");
  return arguments;
}

ExprPtr parse_call(TokenStream& stream, ExprPtr callee) {
  const int line = stream.current().line;
  CallArguments arguments = parse_arguments(stream);
  const int height = std::max(height_of(callee), height_of(arguments));
  return build(Call{std::move(callee), std::move(arguments)}, line, height);
}

/// What stands between [ and ].
ExprPtr parse_subscript(TokenStream& stream, ExprPtr object) {
  const int line = stream.current().line;
  stream.expect_symbol("[");
  const auto bound = [&stream]() -> ExprPtr {
    return stream.is_symbol(":") || stream.is_symbol("]") ? nullptr : parse_expression(stream);
  };
  ExprPtr first = bound();
  if (!stream.is_symbol(":")) {
    if (first == nullptr) {
      stream.fail_expecting("an index or a slice");
    }
    stream.expect_symbol("]");
    const int height = std::max(height_of(object), height_of(first));
    return build(GetItem{std::move(object), std::move(first)}, line, height);
  }
  stream.expect_symbol(":");
  ExprPtr stop = bound();
  ExprPtr step = stream.skip_symbol(":") ? bound() : nullptr;
  stream.expect_symbol("]");
  const int height = std::max({height_of(object), height_of(first), height_of(stop), height_of(step)});
  return build(GetSlice{std::move(object), std::move(first), std::move(stop), std::move(step)}, line, height);
}

ExprPtr parse_postfix(TokenStream& stream, ExprPtr expr) {
  while (true) {
    if (stream.is_symbol(".")) {
      const int line = stream.take().line;
      const int height = height_of(expr);
      if (stream.is(Token::Kind::integer)) {
        ExprPtr index = parse_integer(stream.take());
        expr = build(GetItem{std::move(expr), std::move(index)}, line, height);
      } else {
        std::string name = stream.take_name("a name after '.'");
        expr = build(GetAttribute{std::move(expr), std::move(name)}, line, height);
      }
    } else if (stream.is_symbol("[")) {
      expr = parse_subscript(stream, std::move(expr));
    } else if (stream.is_symbol("(")) {
      expr = parse_call(stream, std::move(expr));
    } else {
      return expr;
    }
  }
}

std::string parse_dotted_name(TokenStream& stream, std::string_view expected) {
  std::string name = stream.take_name(expected);
  while (stream.skip_symbol(".")) {
    name += "." + stream.take_name("a name after '.'");
  }
  return name;
}

ExprPtr parse_filter(TokenStream& stream, ExprPtr input) {
  const int line = stream.current().line;
  std::string name = parse_dotted_name(stream, "the name of a filter");
  CallArguments arguments = stream.is_symbol("(") ? parse_arguments(stream) : CallArguments{};
  const Builtin* const builtin = find_filter(name);
  const int height = std::max(height_of(input), height_of(arguments));
  return build(Apply{std::move(input), std::move(name), builtin, std::move(arguments)}, line, height);
}

/// Whether the argument of a test may start here without parentheses: `x is divisibleby 3`.
bool starts_test_argument(const TokenStream& stream) {
  switch (stream.current().kind) {
    case Token::Kind::name:
      return !stream.is_name("else") && !stream.is_name("or") && !stream.is_name("and") && !stream.is_name("is") &&
             !stream.is_name("if") && !stream.is_name("not") && !stream.is_name("in");
    case Token::Kind::string:
    case Token::Kind::integer:
    case Token::Kind::floating:
      return true;
    default:
      return stream.is_symbol("[") || stream.is_symbol("{");
  }
}

ExprPtr parse_test(TokenStream& stream, ExprPtr input) {
  const int line = stream.current().line;
  const bool negated = stream.skip_name("not");
  std::string name = parse_dotted_name(stream, "the name of a test");
  CallArguments arguments;
  if (stream.is_symbol("(")) {
    arguments = parse_arguments(stream);
  } else if (starts_test_argument(stream)) {
    arguments.positional.push_back(parse_postfix(stream, parse_primary(stream)));
  }
  const Builtin* const builtin = find_test(name);
  const int height = std::max(height_of(input), height_of(arguments));
  ExprPtr test = build(Apply{std::move(input), std::move(name), builtin, std::move(arguments)}, line, height);
  if (!negated) {
    return test;
  }
  const int test_height = test->height;
  return build(Unary{UnaryOperator::logical_not, std::move(test)}, line, test_height);
}

ExprPtr parse_filters_and_tests(TokenStream& stream, ExprPtr expr) {
  while (true) {
    if (stream.skip_symbol("|")) {
      expr = parse_filter(stream, std::move(expr));
    } else if (stream.skip_name("is")) {
      expr = parse_test(stream, std::move(expr));
    } else if (stream.is_symbol("(")) {
      expr = parse_call(stream, std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr binary(BinaryOperator op, ExprPtr left, ExprPtr right, int line) {
  const int height = std::max(height_of(left), height_of(right));
  return build(Binary{op, std::move(left), std::move(right)}, line, height);
}

ExprPtr parse_power(TokenStream& stream) {
  ExprPtr left = parse_unary(stream);
  while (stream.is_symbol("**")) {
    const int line = stream.take().line;
    left = binary(BinaryOperator::power, std::move(left), parse_unary(stream), line);
  }
  return left;
}

using OperatorNames = std::initializer_list<std::pair<std::string_view, BinaryOperator>>;

/// A chain of operators of one precedence, from left to right.
ExprPtr parse_chain(TokenStream& stream, OperatorNames operators, ExprPtr (*operand)(TokenStream&)) {
  ExprPtr left = operand(stream);
  while (true) {
    const auto* const found = std::find_if(operators.begin(), operators.end(),
                                           [&stream](const auto& entry) { return stream.is_symbol(entry.first); });
    if (found == operators.end()) {
      return left;
    }
    const int line = stream.take().line;
    left = binary(found->second, std::move(left), operand(stream), line);
  }
}

ExprPtr parse_product(TokenStream& stream) {
  return parse_chain(stream,
                     {{"*", BinaryOperator::multiply},
                      {"/", BinaryOperator::divide},
                      {"//", BinaryOperator::floor_divide},
                      {"%", BinaryOperator::modulo}},
                     parse_power);
}

ExprPtr parse_concat(TokenStream& stream) {
  ExprPtr first = parse_product(stream);
  if (!stream.is_symbol("~")) {
    return first;
  }
  const int line = stream.current().line;
  Concat concat;
  int height = height_of(first);
  concat.parts.push_back(std::move(first));
  while (stream.skip_symbol("~")) {
    concat.parts.push_back(parse_product(stream));
    height = std::max(height, height_of(concat.parts.back()));
  }
  return build(std::move(concat), line, height);
}

ExprPtr parse_sum(TokenStream& stream) {
  return parse_chain(stream, {{"+", BinaryOperator::add}, {"-", BinaryOperator::subtract}}, parse_concat);
}

std::optional<CompareOperator> take_comparison(TokenStream& stream) {
  constexpr std::array<std::pair<std::string_view, CompareOperator>, 6> operators = {
      {{"==", CompareOperator::equal},
       {"!=", CompareOperator::not_equal},
       {"<", CompareOperator::less},
       {"<=", CompareOperator::less_equal},
       {">", CompareOperator::greater},
       {">=", CompareOperator::greater_equal}}};
  for (const auto& [text, op] : operators) {
    if (stream.skip_symbol(text)) {
      return op;
    }
  }
  if (stream.skip_name("in")) {
    return CompareOperator::in;
  }
  if (stream.is_name("not") && stream.ahead().kind == Token::Kind::name && stream.ahead().text == "in") {
    (void)stream.take();
    (void)stream.take();
    return CompareOperator::not_in;
  }
  return std::nullopt;
}

ExprPtr parse_comparison(TokenStream& stream) {
  const int line = stream.current().line;
  Compare compare{.first = parse_sum(stream)};
  int height = height_of(compare.first);
  while (const auto op = take_comparison(stream)) {
    compare.rest.emplace_back(*op, parse_sum(stream));
    height = std::max(height, height_of(compare.rest.back().second));
  }
  return compare.rest.empty() ? std::move(compare.first) : build(std::move(compare), line, height);
}

ExprPtr parse_not(TokenStream& stream) {
  if (!stream.is_name("not")) {
    return parse_comparison(stream);
  }
  const TokenStream::Level level(stream);
  const int line = stream.take().line;
  ExprPtr operand = parse_not(stream);
  const int height = height_of(operand);
  return build(Unary{UnaryOperator::logical_not, std::move(operand)}, line, height);
}

ExprPtr parse_logical(TokenStream& stream, std::string_view word, ExprPtr (*operand)(TokenStream&)) {
  ExprPtr left = operand(stream);
  while (stream.is_name(word)) {
    const int line = stream.take().line;
    ExprPtr right = operand(stream);
    const int height = std::max(height_of(left), height_of(right));
    left = build(Logical{word == "and", std::move(left), std::move(right)}, line, height);
  }
  return left;
}

ExprPtr parse_and(TokenStream& stream) { return parse_logical(stream, "and", parse_not); }
ExprPtr parse_or(TokenStream& stream) { return parse_logical(stream, "or", parse_and); }

}  // namespace

ExprPtr parse_unary(TokenStream& stream, bool with_filters) {
  const TokenStream::Level level(stream);
  ExprPtr expr;
  if (stream.is_symbol("-") || stream.is_symbol("+")) {
    const Token sign = stream.take();
    ExprPtr operand = parse_unary(stream, false);
    const int height = height_of(operand);
    expr = build(Unary{sign.text == "-" ? UnaryOperator::negate : UnaryOperator::plus, std::move(operand)}, sign.line,
                 height);
  } else {
    expr = parse_primary(stream);
  }
  expr = parse_postfix(stream, std::move(expr));
  return with_filters ? parse_filters_and_tests(stream, std::move(expr)) : std::move(expr);
}

ExprPtr parse_expression(TokenStream& stream) {
  const TokenStream::Level level(stream);
  ExprPtr yes = parse_or(stream);
  while (stream.is_name("if")) {
    const int line = stream.take().line;
    ExprPtr condition = parse_or(stream);
    ExprPtr no = stream.skip_name("else") ? parse_expression(stream) : nullptr;
    const int height = std::max({height_of(yes), height_of(condition), height_of(no)});
    yes = build(Conditional{std::move(condition), std::move(yes), std::move(no)}, line, height);
  }
  return yes;
}

ExprPtr parse_tuple(TokenStream& stream, TupleRules rules) {
  const int line = stream.current().line;
  const auto at_end = [&] {
    return stream.is(Token::Kind::print_end) || stream.is(Token::Kind::block_end) || stream.is_symbol(")") ||
           (!rules.end_name.empty() && stream.is_name(rules.end_name));
  };
  ListLiteral tuple{.tuple = true};
  int height = 0;
  bool has_comma = false;
  while (!at_end()) {
    tuple.items.push_back(rules.conditional ? parse_expression(stream) : parse_or(stream));
    height = std::max(height, height_of(tuple.items.back()));
    if (!stream.skip_symbol(",")) {
      break;
    }
    has_comma = true;
  }
  if (tuple.items.size() == 1 && !has_comma) {
    return std::move(tuple.items.front());
  }
  if (tuple.items.empty() && !rules.may_be_empty) {
    stream.fail_expecting("an expression");
  }
  return build(std::move(tuple), line, height);
}

ExprPtr parse_filters(TokenStream& stream, ExprPtr input) {
  do {
    input = parse_filter(stream, std::move(input));
  } while (stream.skip_symbol("|"));
  return input;
}

}  // namespace troupe::jinja

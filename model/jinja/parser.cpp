#include "model/jinja/parser.hpp"

#include <algorithm>
#include <utility>

#include "model/jinja/expression_parser.hpp"

namespace troupe::jinja {
namespace {

class StatementParser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Outcome<std::shared_ptr<const Program>> run() {
    program_.body = body({});
    if (!ok() || unknown_) {
      return tl::unexpected<Fault>(ok() ? std::move(*unknown_) : std::move(*fault_));
    }
    return std::make_shared<const Program>(std::move(program_));
  }

 private:
  /// Statements up to a tag of one of these names, which is taken up to its name; with no names, all that are left.
  Body body(std::initializer_list<std::string_view> ends);
  /// The rest of a tag that has a body, its body, and the tag that ends it.
  Body block(std::string_view end);
  void statement(Body& body);
  void tag(Body& body, const Token& name);

  If if_statement();
  For for_statement();
  void set_statement(Body& body, int line);
  With with_statement();
  FilterBlock filter_statement();
  DefineMacro macro_statement();
  CallBlock call_statement();

  Target target(bool with_attribute);
  Target single_target(bool with_attribute);
  std::vector<Parameter> parameters();
  /// Parses a macro's body and notes which special variables it mentions.
  void macro_body(MacroDefinition& macro, std::string_view end);

  /// Loops around the statement that is parsed, within its macro.
  int loops_ = 0;
};

Body StatementParser::body(std::initializer_list<std::string_view> ends) {
  const Level level(*this);
  const int first_line = previous_line();
  Body statements;
  while (ok() && peek().kind != Token::Kind::end) {
    if (peek().kind == Token::Kind::block_begin && peek(1).kind == Token::Kind::name &&
        std::find(ends.begin(), ends.end(), peek(1).text) != ends.end()) {
      take();
      return statements;
    }
    statement(statements);
  }
  if (ends.size() > 0) {
    fail_at(first_line, "expected a tag '" + std::string(*(ends.end() - 1)) +
                            "' that ends the block, found the end of the template");
  }
  return statements;
}

Body StatementParser::block(std::string_view end) {
  expect_kind(Token::Kind::block_end);
  Body statements = body({end});
  take();
  expect_kind(Token::Kind::block_end);
  return statements;
}

void StatementParser::statement(Body& body) {
  Token token = take();
  if (token.kind == Token::Kind::text) {
    body.push_back({Text{std::move(token.text)}, token.line});
  } else if (token.kind == Token::Kind::print_begin) {
    body.push_back({Print{tuple()}, token.line});
    expect_kind(Token::Kind::print_end);
  } else {
    const Token name = peek();
    (void)expect_identifier("the name of a tag");
    tag(body, name);
  }
}

void StatementParser::tag(Body& body, const Token& name) {
  const std::string& kind = name.text;
  if (kind == "set") {
    set_statement(body, name.line);
    return;
  }
  if (kind == "if") {
    body.push_back({if_statement(), name.line});
  } else if (kind == "for") {
    body.push_back({for_statement(), name.line});
  } else if (kind == "with") {
    body.push_back({with_statement(), name.line});
  } else if (kind == "generation") {
    body.push_back({With{{}, block("endgeneration")}, name.line});
  } else if (kind == "filter") {
    body.push_back({filter_statement(), name.line});
  } else if (kind == "macro") {
    body.push_back({macro_statement(), name.line});
  } else if (kind == "call") {
    body.push_back({call_statement(), name.line});
  } else if ((kind == "break" || kind == "continue") && loops_ > 0) {
    body.push_back({kind == "break" ? Statement::Node(Break{}) : Statement::Node(Continue{}), name.line});
    expect_kind(Token::Kind::block_end);
  } else {
    fail_at(name.line, "expected a known tag in its place, found '" + kind + "'");
  }
}

If StatementParser::if_statement() {
  If result;
  ExprPtr condition = tuple(false);
  ++conditional_;
  while (true) {
    expect_kind(Token::Kind::block_end);
    result.branches.emplace_back(std::move(condition), body({"elif", "else", "endif"}));
    if (!take_name("elif")) {
      break;
    }
    condition = tuple(false);
  }
  if (take_name("else")) {
    result.otherwise = block("endif");
  } else {
    take();
    expect_kind(Token::Kind::block_end);
  }
  --conditional_;
  return result;
}

For StatementParser::for_statement() {
  For result;
  result.target = target(false);
  expect_name("in");
  result.iterable = tuple(false);
  if (take_name("if")) {
    result.filter = expression();
  }
  expect_kind(Token::Kind::block_end);
  ++loops_;
  result.body = body({"else", "endfor"});
  --loops_;
  if (take_name("else")) {
    result.otherwise = block("endfor");
  } else {
    take();
    expect_kind(Token::Kind::block_end);
  }
  return result;
}

void StatementParser::set_statement(Body& body, int line) {
  Target name = target(true);
  if (take_symbol("=")) {
    body.push_back({Set{std::move(name), tuple()}, line});
    expect_kind(Token::Kind::block_end);
    return;
  }
  ExprPtr filtered = at_symbol("|") ? filters(make(line, 0, Piped{}), false) : nullptr;
  body.push_back({SetBlock{std::move(name), std::move(filtered), block("endset")}, line});
}

With StatementParser::with_statement() {
  With result;
  while (ok() && peek().kind != Token::Kind::block_end) {
    Target name = single_target(false);
    expect_symbol("=");
    result.assignments.emplace_back(std::move(name), expression());
    if (!take_symbol(",")) {
      break;
    }
  }
  result.body = block("endwith");
  return result;
}

FilterBlock StatementParser::filter_statement() {
  ExprPtr filtered = filters(make(peek().line, 0, Piped{}), true);
  return {std::move(filtered), block("endfilter")};
}

DefineMacro StatementParser::macro_statement() {
  DefineMacro result;
  result.macro.name = expect_identifier("the name of a macro");
  result.symbol = symbol_of(result.macro.name);
  result.macro.parameters = parameters();
  macro_body(result.macro, "endmacro");
  return result;
}

CallBlock StatementParser::call_statement() {
  CallBlock result;
  result.caller.name = "caller";
  if (at_symbol("(")) {
    result.caller.parameters = parameters();
  }
  const int line = peek().line;
  result.call = expression();
  if (ok() && !std::holds_alternative<Call>(result.call->node)) {
    fail_at(line, "expected the call of a macro, found another expression");
  }
  macro_body(result.caller, "endcall");
  return result;
}

std::vector<Parameter> StatementParser::parameters() {
  std::vector<Parameter> result;
  expect_symbol("(");
  while (ok() && !at_symbol(")")) {
    Parameter parameter;
    parameter.name = expect_identifier("the name of a parameter");
    parameter.symbol = symbol_of(parameter.name);
    if (take_symbol("=")) {
      parameter.fallback = expression();
    } else if (!result.empty() && result.back().fallback != nullptr) {
      fail_expecting("a default value");
    }
    result.push_back(std::move(parameter));
    if (!take_symbol(",")) {
      break;
    }
  }
  expect_symbol(")");
  return result;
}

void StatementParser::macro_body(MacroDefinition& macro, std::string_view end) {
  const int outer_loops = std::exchange(loops_, 0);
  const auto outer_mentioned = std::exchange(mentioned_, {});
  macro.body = block(end);
  macro.uses_caller = mentioned_[kCaller];
  macro.uses_varargs = mentioned_[kVarargs];
  macro.uses_kwargs = mentioned_[kKwargs];
  for (std::size_t i = 0; i < mentioned_.size(); ++i) {
    mentioned_.at(i) = mentioned_.at(i) || outer_mentioned.at(i);
  }
  loops_ = outer_loops;
}

Target StatementParser::single_target(bool with_attribute) {
  if (take_symbol("(")) {
    const Level level(*this);
    Target inner = target(false);
    expect_symbol(")");
    return inner;
  }
  static constexpr std::array<std::string_view, 7> kReserved = {"true", "True", "false", "False",
                                                                "none", "None", "loop"};
  if (std::find(kReserved.begin(), kReserved.end(), peek().text) != kReserved.end()) {
    fail_expecting("a variable");
  }
  Target result;
  result.symbol = symbol_of(expect_identifier("a variable"));
  if (with_attribute && take_symbol(".")) {
    result.kind = Target::Kind::attribute;
    result.attribute = expect_identifier("the name of an attribute");
  }
  return result;
}

Target StatementParser::target(bool with_attribute) {
  Target first = single_target(with_attribute);
  if (!at_symbol(",")) {
    return first;
  }
  Target result;
  result.kind = Target::Kind::tuple;
  result.parts.push_back(std::move(first));
  while (take_symbol(",") && (at_symbol("(") || (peek().kind == Token::Kind::name && !at_name("in")))) {
    result.parts.push_back(single_target(with_attribute));
  }
  return result;
}

}  // namespace

Outcome<std::shared_ptr<const Program>> parse(std::string_view source) {
  auto tokens = tokenize(source);
  if (!tokens) {
    return pass(tokens);
  }
  return StatementParser(std::move(*tokens)).run();
}

}  // namespace troupe::jinja

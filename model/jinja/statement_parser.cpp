#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

#include "model/jinja/parser.hpp"
#include "model/jinja/token_stream.hpp"

namespace troupe::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  explicit StatementParser(TokenStream& stream) : stream_(stream) {}

  /// Statements up to a tag that starts with one of `ends`, or to the template's end if there are none.
  Body parse_body(Names ends) {
    const TokenStream::Level level(stream_);
    Body body;
    while (true) {
      const int line = stream_.current().line;
      if (stream_.is(Token::Kind::end)) {
        if (ends.size() > 0) {
          stream_.fail_expecting("{% " + std::string(*std::prev(ends.end())) + " %}");
        }
        return body;
      }
      if (stream_.is(Token::Kind::text)) {
        body.push_back({Text{stream_.take().text}, line});
        continue;
      }
      if (stream_.is(Token::Kind::print_begin)) {
        (void)stream_.take();
        body.push_back({Print{parse_tuple(stream_)}, line});
        stream_.expect(Token::Kind::print_end, "}}");
        continue;
      }
      stream_.expect(Token::Kind::block_begin, "a tag");
      if (std::any_of(ends.begin(), ends.end(), [this](std::string_view end) { return stream_.is_name(end); })) {
        return body;
      }
      body.push_back({parse_statement(), line});
    }
  }

 private:
  void end_tag() { stream_.expect(Token::Kind::block_end, "%}"); }

  /// A body and the tag that ends it.
  Body parse_block(std::string_view end) {
    Body body = parse_body({end});
    stream_.expect_name(end);
    end_tag();
    return body;
  }

  Statement::Node parse_statement() {
    const int line = stream_.current().line;
    const std::string word = stream_.take_name("the name of a statement");
    if (word == "if") {
      return parse_if();
    }
    if (word == "for") {
      return parse_for();
    }
    if (word == "set") {
      return parse_set();
    }
    if (word == "macro") {
      return parse_macro();
    }
    if (word == "call") {
      return parse_call_block();
    }
    if (word == "filter") {
      ExprPtr filters = parse_filters(stream_, make_expr(Piped{}, line, 1));
      end_tag();
      return FilterBlock{std::move(filters), parse_block("endfilter")};
    }
    if (word == "with") {
      return parse_with();
    }
    if (word == "generation") {
      end_tag();
      return With{{}, parse_block("endgeneration")};
    }
    if (word == "break" || word == "continue") {
      if (loops_ == 0) {
        TokenStream::fail_at(line, "expected " + word + " inside of a loop, found it outside");
      }
      end_tag();
      return word == "break" ? Statement::Node(Break{}) : Statement::Node(Continue{});
    }
    TokenStream::fail_at(line, "expected a statement of chat templates (if, for, set, macro, call, filter, with, "
                               "generation, break, continue, raw), found '" + word + "'");
  }

  If parse_if() {
    If statement;
    ExprPtr condition = parse_tuple(stream_, {.conditional = false});
    while (true) {
      end_tag();
      Body body = parse_body({"elif", "else", "endif"});
      statement.branches.emplace_back(std::move(condition), std::move(body));
      if (stream_.skip_name("elif")) {
        condition = parse_tuple(stream_, {.conditional = false});
        continue;
      }
      if (stream_.skip_name("else")) {
        end_tag();
        statement.otherwise = parse_block("endif");
      } else {
        stream_.expect_name("endif");
        end_tag();
      }
      return statement;
    }
  }

  For parse_for() {
    For statement;
    statement.target = parse_target(/*in_loop=*/true);
    stream_.expect_name("in");
    statement.iterable = parse_tuple(stream_, {.conditional = false, .end_name = "recursive"});
    if (stream_.skip_name("if")) {
      statement.filter = parse_expression(stream_);
    }
    statement.recursive = stream_.skip_name("recursive");
    end_tag();
    ++loops_;
    statement.body = parse_body({"else", "endfor"});
    --loops_;
    if (stream_.skip_name("else")) {
      end_tag();
      statement.otherwise = parse_block("endfor");
    } else {
      stream_.expect_name("endfor");
      end_tag();
    }
    return statement;
  }

  Target parse_target_part() {
    const TokenStream::Level level(stream_);
    if (stream_.skip_symbol("(")) {
      Target inner = parse_target(/*in_loop=*/false);
      stream_.expect_symbol(")");
      return inner;
    }
    Target target;
    target.symbol = stream_.symbol(stream_.take_name("a variable"));
    if (stream_.skip_symbol(".")) {
      target.kind = Target::Kind::attribute;
      target.attribute = stream_.take_name("an attribute");
    }
    return target;
  }

  Target parse_target(bool in_loop) {
    Target first = parse_target_part();
    if (!stream_.is_symbol(",")) {
      return first;
    }
    Target tuple{.kind = Target::Kind::tuple};
    tuple.parts.push_back(std::move(first));
    while (stream_.skip_symbol(",")) {
      const bool ends = stream_.is_symbol("=") || stream_.is_symbol(")") || (in_loop && stream_.is_name("in"));
      if (ends) {
        break;
      }
      tuple.parts.push_back(parse_target_part());
    }
    return tuple;
  }

  Statement::Node parse_set() {
    Target target = parse_target(/*in_loop=*/false);
    if (stream_.skip_symbol("=")) {
      Set set{std::move(target), parse_tuple(stream_)};
      end_tag();
      return set;
    }
    SetBlock block{.target = std::move(target)};
    if (stream_.is_symbol("|")) {
      const int line = stream_.take().line;
      block.filters = parse_filters(stream_, make_expr(Piped{}, line, 1));
    }
    end_tag();
    block.body = parse_block("endset");
    return block;
  }

  /// `(a, b=1)`
  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    stream_.expect_symbol("(");
    while (!stream_.is_symbol(")")) {
      Parameter parameter;
      parameter.name = stream_.take_name("a parameter");
      parameter.symbol = stream_.symbol(parameter.name);
      if (stream_.skip_symbol("=")) {
        parameter.fallback = parse_expression(stream_);
      } else if (!parameters.empty() && parameters.back().fallback != nullptr) {
        stream_.fail_expecting("a default for '" + parameter.name + "' as well");
      }
      parameters.push_back(std::move(parameter));
      if (!stream_.skip_symbol(",")) {
        break;
      }
    }
    stream_.expect_symbol(")");
    return parameters;
  }

  /// The rest of a macro, from its parameters on.
  void parse_macro_body(MacroDefinition& macro, std::string_view end) {
    end_tag();
    const int loops = std::exchange(loops_, 0);
    MacroDefinition* const outer = std::exchange(stream_.macro, &macro);
    macro.body = parse_block(end);
    stream_.macro = outer;
    loops_ = loops;
  }

  DefineMacro parse_macro() {
    DefineMacro define;
    define.macro.name = stream_.take_name("the macro's name");
    define.symbol = stream_.symbol(define.macro.name);
    define.macro.parameters = parse_parameters();
    parse_macro_body(define.macro, "endmacro");
    return define;
  }

  CallBlock parse_call_block() {
    CallBlock block;
    block.caller.name = "caller";
    if (stream_.is_symbol("(")) {
      block.caller.parameters = parse_parameters();
    }
    const int line = stream_.current().line;
    block.call = parse_expression(stream_);
    if (!std::holds_alternative<Call>(block.call->node)) {
      TokenStream::fail_at(line, "expected a call, found another expression");
    }
    parse_macro_body(block.caller, "endcall");
    return block;
  }

  With parse_with() {
    With with;
    while (!stream_.is(Token::Kind::block_end)) {
      Target target = parse_target_part();
      stream_.expect_symbol("=");
      with.assignments.emplace_back(std::move(target), parse_expression(stream_));
      if (!stream_.skip_symbol(",")) {
        break;
      }
    }
    end_tag();
    with.body = parse_block("endwith");
    return with;
  }

  TokenStream& stream_;
  int loops_ = 0;
};

}  // namespace

Outcome<std::shared_ptr<const Program>> parse(std::string_view source) {
  auto tokens = tokenize(source);
  if (!tokens) {
    return pass(tokens);
  }
  auto program = std::make_shared<Program>();
  TokenStream stream(std::move(*tokens), *program);
  try {
    program->body = StatementParser(stream).parse_body({});
  } catch (Fault& syntax_error) {
    return tl::unexpected<Fault>(std::move(syntax_error));
  }
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace troupe::jinja

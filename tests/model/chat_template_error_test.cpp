#include <string>

#include <nlohmann/json.hpp>

#include "model/chat_template.hpp"
#include "model/jinja/limits.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

Error parse_error(std::string_view source) {
  const auto parsed = ChatTemplate::parse(source);
  return parsed ? Error{} : parsed.error();
}

Result<std::string> render(std::string_view source, const Json& variables = {}, const Json& messages = Json::array()) {
  ChatTemplate::RenderOptions options;
  options.variables = variables;
  const auto parsed = ChatTemplate::parse(source);
  return parsed ? parsed->render(messages, options) : tl::unexpected<Error>(parsed.error());
}

Error render_error(std::string_view source, const Json& variables = {}) {
  REQUIRE(ChatTemplate::parse(source));
  const auto text = render(source, variables);
  return text ? Error{} : text.error();
}

std::string repeated(std::string_view unit, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += unit;
  }
  return text;
}

TEST_CASE("chat template: a syntax error names line and expectation") {
  CHECK(parse_error("a\n\n{{ 1 + }}") ==
        Error{ErrorCode::malformed_file, "chat template, line 3: expected an expression, found }}"});
  CHECK(parse_error("{% if x %}\n{% endfor %}").message ==
        "chat template, line 2: expected a known tag in its place, found 'endfor'");
  CHECK(parse_error("{% if x %}\nb").message ==
        "chat template, line 1: expected a tag 'endif' that ends the block, found the end of the template");
  CHECK(parse_error("\n{{ x | nope }}").message ==
        "chat template, line 2: expected the name of a filter, found 'nope'");
  CHECK(parse_error("{{ (1] }}").message == "chat template, line 1: expected ')', found ']'");
  CHECK(parse_error("{{ 'a").message ==
        "chat template, line 1: expected the string to end, found the end of the template");
  CHECK(parse_error("\n{% if").message ==
        "chat template, line 2: expected the tag to end with %}, found the end of the template");
  CHECK(parse_error("{{ 99999999999999999999 }}").message ==
        "chat template, line 1: expected an integer of at most 64 bits, found 99999999999999999999");
  CHECK(parse_error("{% include 'x' %}").message ==
        "chat template, line 1: expected a known tag in its place, found 'include'");
}

TEST_CASE("chat template: a template of invalid UTF-8 does not parse") {
  CHECK(parse_error("a\n\xff") ==
        Error{ErrorCode::malformed_file, "chat template, line 2: expected valid UTF-8, found an invalid byte"});
}

TEST_CASE("chat template: an error of a render names line and expectation") {
  CHECK(render_error("a\n{{ 1 }}\n{{ x.y }}") ==
        Error{ErrorCode::invalid_request, "chat template, line 3: 'x' is undefined"});
  CHECK(render_error("{{ messages[0].content.text }}").message ==
        "chat template, line 1: 'list object' has no element '0'");
  CHECK(render_error("{{ 'a' + 1 }}").message == "chat template, line 1: unsupported operand types for +: str and int");
  CHECK(render_error("{% macro f(a) %}{% endmacro %}\n{{ f(1, 2) }}").message ==
        "chat template, line 2: macro 'f': expected at most 1 argument(s), found 2");
  CHECK(render_error("{{ 'a' | replace(1) }}").message ==
        "chat template, line 1: replace: expected two strings, found fewer arguments");
}

TEST_CASE("chat template: an unknown filter in a branch is an error only when it runs") {
  CHECK(render("{% if x %}{{ 1 | nope }}{% endif %}ok").value() == "ok");
  CHECK(render("{{ 1 | nope if x else 'ok' }}").value() == "ok");
  CHECK(render_error("{% if not x %}{{ 1 | nope }}{% endif %}").message ==
        "chat template, line 1: expected the name of a filter or test, found 'nope'");
}

TEST_CASE("chat template: an exception of the template is an invalid request in its words") {
  CHECK(render_error("\n{{ raise_exception('Roles must ' ~ 'alternate') }}") ==
        Error{ErrorCode::invalid_request, "chat template: Roles must alternate"});
}

TEST_CASE("chat template: input that is not messages is refused") {
  CHECK(render("", {}, Json::object()).error() ==
        Error{ErrorCode::invalid_request, "messages: expected an array, found object"});
  CHECK(render("", {}, Json::parse(R"([{}, "x"])")).error().message == "messages[1]: expected an object, found string");
  CHECK(render("", Json::array()).error().message == "variables of the chat template: expected an object, found array");
  CHECK(render("", {{"x", "\xff"}}).error().message ==
        "chat template: x: expected a string of valid UTF-8, found an invalid byte at offset 0");
}

TEST_CASE("chat template: tokens and variables and messages can be seen") {
  ChatTemplate::RenderOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.add_generation_prompt = false;
  options.variables = {{"tools", Json::array({1})}, {"messages", 5}, {"documents", nullptr}};
  const auto parsed =
      ChatTemplate::parse("{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}{{ tools }}{{ messages }}");
  CHECK(parsed->render(Json::array(), options).value() == "<s></s>False[1][]");
  CHECK(render("{{ tools is none and documents is none and x is undefined }}").value() == "True");
}

TEST_CASE("chat template: nesting in a template is bounded") {
  const std::string message = "expected at most 100 levels";
  const std::size_t many = 50'000;
  for (const std::string& source :
       {"{{ " + repeated("(", many) + "1" + repeated(")", many) + " }}", "{{ " + repeated("[", many),
        "{{ " + repeated("{'a':", many), "{{ " + repeated("not ", many) + "1 }}", "{{ " + repeated("- ", many) + "1 }}",
        "{{ " + repeated("f(", many), "{{ 1" + repeated(" if 1 else 1", many) + " }}", repeated("{% if 1 %}", many / 5),
        repeated("{% for x in y %}", many / 5), repeated("{% macro f() %}", many / 5),
        "{% for " + repeated("(", many)}) {
    CAPTURE(source.substr(0, 20));
    CHECK(parse_error(source).message.find(message) != std::string::npos);
  }
}

TEST_CASE("chat template: chains of operators are bounded") {
  const std::size_t many = 20'000;
  for (const std::string& unit :
       {std::string("+ 1"), std::string("| upper"), std::string(".x"), std::string("[0]"), std::string("()"),
        std::string(" and 1"), std::string("** 1"), std::string(" is string")}) {
    CAPTURE(unit);
    CHECK(parse_error("{{ x" + repeated(unit, many) + " }}").message.find("at most 500 levels") != std::string::npos);
    CHECK(parse_error("{{ x" + repeated(unit, 400) + " }}").code == ErrorCode::none);
  }
  CHECK(render("{{ 0" + repeated(" + 1", 400) + " }}").value() == "400");
  CHECK(render("{{ 0" + repeated(" ~ 1", many) + " }}").value().size() == many + 1);
}

TEST_CASE("chat template: sources are bounded") {
  CHECK(parse_error(std::string(jinja::kMaxSourceBytes + 1, 'a')).message ==
        "chat template: expected a template of at most 1048576 bytes, found 1048577");
  CHECK(parse_error(std::string(jinja::kMaxSourceBytes, 'a')).code == ErrorCode::none);
}

TEST_CASE("chat template: recursion without end is bounded") {
  const std::string message = "expected at most 1000 nested evaluations";
  for (const std::string source :
       {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{% call f() %}{% endcall "
        "%}",
        "{% macro f(a=f()) %}{% endmacro %}{{ f() }}",
        "{% macro f(x) %}{% for i in [1] if f(x) %}{% endfor %}{% endmacro %}{{ f(1) }}",
        "{% macro f() %}{% set x | trim %}{{ f() }}{% endset %}{% endmacro %}{{ f() }}",
        "{% set ns = namespace() %}{% macro f() %}{{ ns.f() }}{% endmacro %}{% set ns.f = f %}{{ ns.f() }}"}) {
    CAPTURE(source);
    CHECK(render_error(source).message.find(message) != std::string::npos);
  }
}

TEST_CASE("chat template: the steps of a render are bounded") {
  const std::string loops = repeated("{% for i in range(100000) %}", 3) + "{{ i }}" + repeated("{% endfor %}", 3);
  CHECK(render_error(loops).message.find("expected at most 8388608 steps") != std::string::npos);
  const std::string empty =
      "{% set r = range(100000) %}" + repeated("{% for i in r %}", 3) + repeated("{% endfor %}", 3);
  CHECK(render_error(empty).message.find("expected at most 8388608 steps") != std::string::npos);
  const Json text = {{"text", std::string(1 << 20, 'a')}};
  for (const std::string work : {"'b' in text", "text == text ~ ''", "text.find('b')", "text | lower == 1",
                                 "text.isdigit()", "[text] | map('length') | list", "messages[text]"}) {
    CAPTURE(work);
    const std::string source = "{% for i in range(100000) %}{% for j in range(100000) %}{% if " + work +
                               " %}{% endif %}{% endfor %}{% endfor %}";
    CHECK(render_error(source, text).message.find("expected at most") != std::string::npos);
  }
}

TEST_CASE("chat template: the size of texts and values is bounded") {
  const std::string doubling = "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x ";
  for (const std::string rest : {"~ ns.x", "+ ns.x", "* 2", "| replace('a', 'aa')", "| tojson | tojson",
                                 "| indent(1000) ~ '\n' ~ ns.x", ".replace('', ns.x)", "| list | join(ns.x)"}) {
    CAPTURE(rest);
    CHECK(render_error(doubling + rest + " %}{% endfor %}").message.find("expected a") != std::string::npos);
  }
  CHECK(render_error("{{ 'a' * 100000000 }}").message.find("expected a string of at most 67108864 bytes") !=
        std::string::npos);
  CHECK(render_error("{{ [1] * 1000000000000 }}").message.find("expected a list that fits") != std::string::npos);
  CHECK(render_error("{{ range(100001) }}").message.find("range: expected at most 100000 values") != std::string::npos);
  CHECK(render_error("{% set ns = namespace(x=[]) %}{% for i in range(200) %}{% set ns.x = [ns.x] %}{% endfor %}")
            .message.find("expected at most 100 levels of nested values") != std::string::npos);
  const std::string output = "{% for i in range(100000) %}" + std::string(1000, 'a') + "{% endfor %}";
  CHECK(render_error(output).message.find("expected a string of at most 67108864 bytes") != std::string::npos);
}

TEST_CASE("chat template: the depth of messages is bounded") {
  const auto nested = [](int levels) {
    Json value = 1;
    for (int i = 0; i < levels; ++i) {
      value = Json::array({value});
    }
    return Json{{"x", value}};
  };
  CHECK(render("{{ x }}", nested(100)).value().size() == 201);
  CHECK(render_error("{{ x }}", nested(101)).message ==
        "chat template: x: expected at most 100 levels of nested values, found more");
}

TEST_CASE("chat template: values may refer to each other in circles") {
  CHECK(render("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns.self.self is defined }}").value() == "True");
  CHECK(render("{% set ns = namespace() %}{% for i in [1, 2] if i %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}")
            .value() == "2");
  CHECK(render("{% set ns = namespace() %}{% for i in [1, 2] %}{% set l = loop %}{% set ns.l = l %}{% endfor %}")
            .value()
            .empty());
}

TEST_CASE("chat template: copies and renders share one template") {
  const auto first = ChatTemplate::parse("{% set ns = namespace(n=0) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ x }}");
  const ChatTemplate copy = *first;
  ChatTemplate::RenderOptions options;
  options.variables = {{"x", "a"}};
  CHECK(first->render(Json::array(), options).value() == "1a");
  options.variables = {{"x", "b"}};
  CHECK(copy.render(Json::array(), options).value() == "1b");
}

}  // namespace
}  // namespace troupe

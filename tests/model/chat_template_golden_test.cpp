// Renders the templates of tests/golden/chat_templates and compares with what jinja2 made of them (record.py there).
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "model/chat_template.hpp"
#include "tests/support/catch.hpp"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = std::string(TROUPE_TEST_DATA) + "/chat_templates/";

std::string read_file(const std::string& name) {
  std::ifstream stream(kFolder + name, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Json read_json(const std::string& name) { return Json::parse(read_file(name)); }

/// Compares a render with a record: its text, or the kind of its error.
void check_against(const Json& expected, const std::string& source, const Json& messages, bool prompt,
                   const Json& variables, std::int64_t now) {
  ChatTemplate::RenderOptions options;
  options.add_generation_prompt = prompt;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.variables = variables;
  options.now = std::chrono::system_clock::from_time_t(now);
  const auto parsed = ChatTemplate::parse(source);
  const auto text = parsed ? parsed->render(messages, options) : tl::unexpected<Error>(parsed.error());
  CAPTURE(source);
  if (expected.contains("text")) {
    CAPTURE(text ? "" : text.error().message);
    REQUIRE(text);
    CHECK(*text == expected["text"].get<std::string>());
    return;
  }
  CAPTURE(text ? *text : "");
  REQUIRE_FALSE(text);
  CAPTURE(text.error().message);
  if (expected["error"] == "syntax") {
    CHECK(text.error().code == ErrorCode::malformed_file);
    CHECK(text.error().message.find("line ") != std::string::npos);
  } else if (expected["error"] == "raised") {
    CHECK(text.error().code == ErrorCode::invalid_request);
    CHECK(text.error().message == "chat template: " + expected["message"].get<std::string>());
  }
}

void check_snippets(const std::string& group) {
  ::setenv("TZ", "UTC", 1);  // as in record.py
  const Json file = read_json("snippets.json");
  int found = 0;
  for (const Json& snippet : file["snippets"]) {
    if (snippet["group"] == group) {
      ++found;
      check_against(snippet, snippet["template"], file["messages"], true, file["variables"], file["now"]);
    }
  }
  CHECK(found > 0);
}

TEST_CASE("chat template: whole templates render as in jinja2") {
  ::setenv("TZ", "UTC", 1);
  const std::int64_t now = read_json("snippets.json")["now"];
  std::map<std::string, Json> conversations;
  for (const Json& conversation : read_json("conversations.json")) {
    conversations[conversation["name"]] = conversation;
  }
  const Json renders = read_json("renders.json");
  REQUIRE(renders.size() == 4 * 2 * conversations.size());
  for (const Json& render : renders) {
    const std::string name = render["template"];
    const Json& conversation = conversations.at(render["conversation"]);
    CAPTURE(name, conversation["name"]);
    check_against(render, read_file(name), conversation["messages"], render["prompt"], conversation["variables"], now);
  }
}

TEST_CASE("chat template: white space around tags is trimmed as in jinja2") { check_snippets("white space"); }
TEST_CASE("chat template: literals and operators are Python's") { check_snippets("literals and operators"); }
TEST_CASE("chat template: attributes and items and slices are Python's") { check_snippets("access"); }
TEST_CASE("chat template: string methods are Python's") { check_snippets("string methods"); }
TEST_CASE("chat template: filters of text are jinja2's") { check_snippets("text filters"); }
TEST_CASE("chat template: tojson writes what json.dumps writes") { check_snippets("json"); }
TEST_CASE("chat template: filters of sequences are jinja2's") { check_snippets("sequence filters"); }
TEST_CASE("chat template: some filters give generators") { check_snippets("generators"); }
TEST_CASE("chat template: tests are jinja2's") { check_snippets("tests"); }
TEST_CASE("chat template: statements and scopes are jinja2's") { check_snippets("statements"); }
TEST_CASE("chat template: macros are jinja2's") { check_snippets("macros"); }
TEST_CASE("chat template: what fails in jinja2 fails") { check_snippets("errors"); }
TEST_CASE("chat template: malformed templates do not parse") { check_snippets("syntax errors"); }

}  // namespace
}  // namespace troupe

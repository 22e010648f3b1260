// Mutates the templates of tests/golden/chat_templates at random: whatever comes out, parsing and rendering end with a
// text or an error. Run under address,undefined sanitizers to see what only they see.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/chat_template.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path kFolder = std::filesystem::path(TROUPE_TEST_DATA) / "chat_templates";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, std::vector<std::string> corpus) : random_(seed), corpus_(std::move(corpus)) {}

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  const std::string& pick() { return corpus_[below(corpus_.size())]; }

  std::string mutate() {
    std::string text = pick();
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      change(text);
    }
    return text;
  }

 private:
  void change(std::string& text) {
    static const std::vector<std::string> kWords = {"{{",
                                                    "}}",
                                                    "{%",
                                                    "%}",
                                                    "{#",
                                                    "-%}",
                                                    "(",
                                                    ")",
                                                    "[",
                                                    "]",
                                                    "|",
                                                    ".",
                                                    "~",
                                                    " if ",
                                                    " in ",
                                                    " is ",
                                                    " not ",
                                                    "loop",
                                                    "messages",
                                                    "caller()",
                                                    "\xff",
                                                    "'",
                                                    "\"",
                                                    "[::-1]",
                                                    "**",
                                                    " % ",
                                                    "999999999",
                                                    "-1",
                                                    "none",
                                                    "namespace",
                                                    "{}",
                                                    "{% endif %}",
                                                    "{% endfor %}",
                                                    "{% set x %}",
                                                    "{% endset %}",
                                                    "{% macro f(a) %}",
                                                    "{% endmacro %}",
                                                    "{% break %}",
                                                    " | tojson",
                                                    " | list",
                                                    " | first",
                                                    " | map(",
                                                    " | indent(",
                                                    "range(",
                                                    "\\",
                                                    "\xf0\x9f\x99\x82"};
    const std::size_t position = below(text.size() + 1);
    const std::size_t length = below(20);
    switch (below(5)) {
      case 0:
        text.erase(position, length);
        break;
      case 1:
        text.insert(position, kWords[below(kWords.size())]);
        break;
      case 2:
        if (position < text.size()) {
          text[position] = static_cast<char>(below(256));
        }
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(position, length));
        break;
      default: {
        const std::string& other = pick();
        text = text.substr(0, position) + other.substr(below(other.size() + 1));
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> corpus_;
};

TEST_CASE("chat template: mutated templates end with a text or an error") {
  const std::uint64_t seed = test::test_seed();
  INFO("TROUPE_SEED=" << seed);
  const Json snippets = Json::parse(read_file(kFolder / "snippets.json"));
  const Json conversations = Json::parse(read_file(kFolder / "conversations.json"));
  std::vector<std::string> corpus;
  for (const char* const name : {"alternating.jinja", "chatml.jinja", "tools.jinja", "types.jinja"}) {
    // The whole templates are few: each counts as many snippets.
    corpus.insert(corpus.end(), 40, read_file(kFolder / name));
  }
  for (const Json& snippet : snippets["snippets"]) {
    corpus.push_back(snippet["template"]);
  }
  Mutator mutator(seed, std::move(corpus));
  int parsed = 0;
  int rendered = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string source = mutator.mutate();
    const auto result = ChatTemplate::parse(source);
    if (!result) {
      REQUIRE_FALSE(result.error().message.empty());
      continue;
    }
    ++parsed;
    const Json& conversation = conversations[mutator.below(conversations.size())];
    ChatTemplate::RenderOptions options;
    options.variables = snippets["variables"];
    options.variables.update(conversation["variables"]);
    const auto text = result->render(conversation["messages"], options);
    rendered += text ? 1 : 0;
    CAPTURE(source);
    REQUIRE((text || !text.error().message.empty()));
  }
  // Mutations that break everything would test little.
  CHECK(parsed > 1000);
  CHECK(rendered > 500);
}

}  // namespace
}  // namespace troupe

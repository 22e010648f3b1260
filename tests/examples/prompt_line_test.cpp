#include "examples/generate/prompt_line.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace troupe::generate {
namespace {

/// The message that a line is refused with; "" if it is taken.
std::string refusal(const std::string& text) {
  const Result<PromptLine> line = parse_prompt_line(text);
  return line ? "" : line.error().message;
}

bool mentions(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

TEST_CASE("a line gives prompt and parameters") {
  const Result<PromptLine> line = parse_prompt_line(
      R"({"id": "a", "prompt": "Hi", "max_new_tokens": 5, "temperature": 0.5, "top_k": 40, "top_p": 0.9, "min_p": 0.1,)"
      R"( "seed": 18446744073709551615, "ignore_eos": true, "eos_token_ids": [2, 3], "prefix_sharing": false,)"
      R"( "logprobs": true})");
  REQUIRE(line);
  CHECK(line->id == "a");
  CHECK(line->prompt == "Hi");
  CHECK_FALSE(line->prompt_ids);
  CHECK_FALSE(line->messages);
  CHECK(line->parameters.max_new_tokens == 5);
  CHECK(line->parameters.temperature == 0.5F);
  CHECK(line->parameters.top_k == 40);
  CHECK(line->parameters.top_p == 0.9F);
  CHECK(line->parameters.min_p == 0.1F);
  CHECK(line->parameters.seed == 18446744073709551615U);
  CHECK(line->parameters.ignore_eos == true);
  CHECK(line->parameters.eos_token_ids == std::vector<TokenId>{2, 3});
  CHECK(line->parameters.prefix_sharing == false);
  CHECK(line->parameters.logprobs == true);
}

TEST_CASE("null counts as absent and integers are ids too") {
  const Result<PromptLine> line =
      parse_prompt_line(R"({"id": 17, "prompt": null, "prompt_ids": [1, 2], "temperature": null, "seed": null})");
  REQUIRE(line);
  CHECK(line->id == "17");
  CHECK(line->prompt_ids == std::vector<TokenId>{1, 2});
  CHECK_FALSE(line->parameters.temperature);
}

TEST_CASE("messages keep the order of their keys") {
  const Result<PromptLine> line =
      parse_prompt_line(R"({"messages": [{"role": "user", "content": "x", "aaa": 1}, {"role": "assistant"}]})");
  REQUIRE(line);
  CHECK(line->messages->dump() == R"([{"role":"user","content":"x","aaa":1},{"role":"assistant"}])");
}

TEST_CASE("a refused line names the field and what was found") {
  struct Case {
    const char* line;
    const char* field;
    const char* found;
  };
  const Case cases[] = {
      {R"({"prompt": 5})", "prompt", "5"},
      {R"({"prompt_ids": 5})", "prompt_ids", "5"},
      {R"({"prompt_ids": [1, "2"]})", "prompt_ids[1]", "\"2\""},
      {R"({"prompt_ids": [1.5]})", "prompt_ids[0]", "1.5"},
      {R"({"prompt_ids": [2147483648]})", "prompt_ids[0]", "2147483648"},
      {R"({"prompt_ids": [9223372036854775808]})", "prompt_ids[0]", "9223372036854775808"},
      {R"({"prompt_ids": [[1]]})", "prompt_ids[0]", "[1]"},
      {R"({"messages": []})", "messages", "[]"},
      {R"({"messages": "hi"})", "messages", "hi"},
      {R"({"messages": [{"content": "no role"}]})", "messages", "no role"},
      {R"({"prompt": "a", "temperature": "0.5"})", "temperature", "\"0.5\""},
      {R"({"prompt": "a", "temperature": true})", "temperature", "true"},
      {R"({"prompt": "a", "temperature": 1e300})", "temperature", "1e+300"},
      {R"({"prompt": "a", "top_k": 1.5})", "top_k", "1.5"},
      {R"({"prompt": "a", "top_k": -2147483649})", "top_k", "-2147483649"},
      {R"({"prompt": "a", "max_new_tokens": 1000000000000})", "max_new_tokens", "1000000000000"},
      {R"({"prompt": "a", "seed": -1})", "seed", "-1"},
      {R"({"prompt": "a", "seed": 18446744073709551616})", "seed", "18446744073709551616"},
      {R"({"prompt": "a", "ignore_eos": 1})", "ignore_eos", "1"},
      {R"({"prompt": "a", "max_tokens": 1})", "max_tokens", "unknown field"},
      {R"({"id": "", "prompt": "a"})", "id", "\"\""},
      {R"({"id": [1], "prompt": "a"})", "id", "[1]"},
      {R"({"prompt": "a", "prompt_ids": [1]})", "prompt, prompt_ids", "found 2"},
      {R"({"id": "a"})", "prompt, prompt_ids", "found 0"},
      {R"([1, 2])", "line", "[1,2]"},
      {R"("text")", "line", "text"},
      {R"(null)", "line", "null"},
  };
  for (const Case& example : cases) {
    CAPTURE(example.line);
    const std::string message = refusal(example.line);
    CAPTURE(message);
    CHECK(mentions(message, example.field));
    // A seed beyond 64 bits becomes a double in the parser.
    if (std::string(example.found) != "18446744073709551616") {
      CHECK(mentions(message, example.found));
    }
  }
}

TEST_CASE("broken JSON is refused") {
  for (const std::string text :
       {"{", "{:", "}", "{\"prompt\": \"a\"", "{\"prompt\": NaN}", "{\"temperature\": 1e999}", "{\"prompt\": \"a\"} {}",
        "{\"prompt\": \"\xff\"}", "{\"prompt\": \"\\ud800\"}", "{\"prompt\": \"a\", \"prompt\": \"b\"}"}) {
    CAPTURE(text);
    CHECK(mentions(refusal(text), "line: "));
  }
}

TEST_CASE("nesting without end is refused instead of exhausting the stack") {
  const std::size_t depth = 1'000'000;
  CHECK(mentions(refusal(R"({"messages": )" + std::string(depth, '[') + std::string(depth, ']') + "}"), "nesting"));
  CHECK(mentions(refusal(std::string(depth, '[')), "nesting"));
}

TEST_CASE("what is shown of a wrong value is short") {
  CHECK(refusal(R"({"prompt_ids": ")" + std::string(100'000, 'x') + "\"}").size() < 200);
}

TEST_CASE("a refused line still tells its id") {
  std::string id;
  CHECK_FALSE(parse_prompt_line(R"({"prompt": 5, "id": "late"})", &id));
  CHECK(id == "late");
}

TEST_CASE("defaults fill only what is open") {
  PromptParameters given;
  given.temperature = 0.5F;
  PromptParameters defaults;
  defaults.temperature = 0.9F;
  defaults.seed = 3;
  defaults.ignore_eos = true;
  const PromptParameters filled = with_defaults(given, defaults);
  CHECK(filled.temperature == 0.5F);
  CHECK(filled.seed == 3U);
  CHECK(filled.ignore_eos == true);
  CHECK_FALSE(filled.max_new_tokens);
}

}  // namespace
}  // namespace troupe::generate

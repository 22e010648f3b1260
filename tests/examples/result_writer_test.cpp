#include "examples/generate/result_writer.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "examples/generate/text_stream.hpp"
#include "tests/support/catch.hpp"

namespace troupe::generate {
namespace {

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A stream whose content can be looked at.
class Sink {
 public:
  Sink() : file_(std::tmpfile()) { REQUIRE(file_); }

  [[nodiscard]] std::FILE* file() const { return file_.get(); }
  [[nodiscard]] std::string content() const {
    std::string text(static_cast<std::size_t>(std::ftell(file_.get())), '\0');
    std::rewind(file_.get());
    REQUIRE(std::fread(text.data(), 1, text.size(), file_.get()) == text.size());
    return text;
  }

 private:
  std::unique_ptr<std::FILE, Closer> file_;
};

LineResult answer(std::size_t place, const std::string& id) {
  return {.line = place + 1,
          .place = place,
          .id = id,
          .text = "t",
          .token_ids = {1, 2},
          .reason = FinishReason::stop,
          .prompt_tokens = 3,
          .cached_tokens = 2};
}

TEST_CASE("a result has its fields in a fixed order") {
  CHECK(format_result(answer(0, "a")) == R"({"id":"a","text":"t","token_ids":[1,2],"finish_reason":"stop",)"
                                         R"("usage":{"prompt_tokens":3,"cached_tokens":2,"completion_tokens":2}})"
                                         "\n");
}

TEST_CASE("a refused line has its number and an error") {
  LineResult refused{.line = 7, .place = 5};
  refused.error = {ErrorCode::invalid_request, "prompt: wrong"};
  CHECK(format_result(refused) == R"({"line":7,"error":{"code":"invalid_request","message":"prompt: wrong"}})"
                                  "\n");
  refused.id = "a";
  CHECK(format_result(refused).starts_with(R"({"id":"a","line":7,)"));
}

TEST_CASE("a request that fails on its way keeps what it had") {
  LineResult failed = answer(0, "a");
  failed.reason = FinishReason::failed;
  failed.error = {ErrorCode::step_failed, "no"};
  const auto json = nlohmann::json::parse(format_result(failed));
  CHECK(json.at("finish_reason") == "failed");
  CHECK(json.at("token_ids").size() == 2);
  CHECK(json.at("error").at("code") == "step_failed");
}

TEST_CASE("without a tokenizer the text is null") {
  LineResult result = answer(0, "a");
  result.text.reset();
  CHECK(nlohmann::json::parse(format_result(result)).at("text").is_null());
}

TEST_CASE("log-probabilities that JSON cannot hold are null") {
  LineResult result = answer(0, "a");
  result.logprobs = {-0.5F, -std::numeric_limits<float>::infinity()};
  const auto json = nlohmann::json::parse(format_result(result));
  CHECK(json.at("logprobs").at(0) == -0.5);
  CHECK(json.at("logprobs").at(1).is_null());
}

TEST_CASE("a result is one line of valid UTF-8 whatever the texts in it") {
  LineResult result = answer(0, "a\nb\xff");
  result.text = "line\nbreak \xf0\x9f\x98\x80 \xc3";
  const std::string text = format_result(result);
  CHECK(text.find('\n') == text.size() - 1);
  const auto json = nlohmann::json::parse(text);
  CHECK(json.at("text") == "line\nbreak \xf0\x9f\x98\x80 \xef\xbf\xbd");
}

TEST_CASE("results come in the order of their lines") {
  const Sink sink;
  ResultWriter writer(sink.file(), ResultOrder::input);
  REQUIRE(writer.write(answer(2, "c")));
  REQUIRE(writer.write(answer(1, "b")));
  CHECK(sink.content().empty());
  REQUIRE(writer.write(answer(0, "a")));
  REQUIRE(writer.write(answer(3, "d")));
  CHECK(sink.content() == format_result(answer(0, "a")) + format_result(answer(1, "b")) +
                              format_result(answer(2, "c")) + format_result(answer(3, "d")));
}

TEST_CASE("results come as they finish") {
  const Sink sink;
  ResultWriter writer(sink.file(), ResultOrder::finish);
  REQUIRE(writer.write(answer(2, "c")));
  REQUIRE(writer.write(answer(0, "a")));
  CHECK(sink.content() == format_result(answer(2, "c")) + format_result(answer(0, "a")));
}

TEST_CASE("a stream that takes no more is an error") {
  const std::unique_ptr<std::FILE, Closer> full(std::fopen("/dev/full", "w"));
  REQUIRE(full);
  ResultWriter writer(full.get(), ResultOrder::finish);
  const Result<void> written = writer.write(answer(0, "a"));
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::io_error);
}

TEST_CASE("streamed answers never mix") {
  const Sink sink;
  TextStream stream(sink.file());
  REQUIRE(stream.add(1, "b1"));
  REQUIRE(stream.add(0, "a1 "));
  REQUIRE(stream.finish(1));
  REQUIRE(stream.add(2, "c1"));
  REQUIRE(stream.add(0, "a2"));
  CHECK(sink.content() == "a1 a2");
  REQUIRE(stream.finish(0));
  CHECK(sink.content() == "a1 a2\nb1\nc1");
}

}  // namespace
}  // namespace troupe::generate

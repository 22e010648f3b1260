/// The front door: what is refused, with which words, and that nothing of it is left.

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Serves a small request while others are refused: neighbours must not notice.
void check_live(SyncEngine& engine) {
  static int number = 0;
  const Request canary = make_request("canary" + std::to_string(number++), {5, 6, 7, 8}, 8);
  engine.accept(canary);
  engine.run();
  CHECK(engine.result(canary.id).tokens == expected_tokens(canary, default_options(1, 1).model, 1024));
}

struct Refusal {
  std::function<void(Request&)> change;
  std::string message;
};

// B59, B60, B63, B64, B66, B70: parameters, top_k, token ids, stop ids, limits, empty prompts.
TEST_CASE("a request that no step could serve is refused with its field and its limit and what was found") {
  const Refusal refusal = GENERATE(
      Refusal{[](Request& r) { r.prompt_ids = {}; }, "prompt_ids must have at least 1 token, but is empty"},
      Refusal{[](Request& r) {
                r.prompt_ids = {5, -1};
              },
              "prompt_ids[1] must be in [0, 512), but is -1"},
      Refusal{[](Request& r) { r.prompt_ids = {512}; }, "prompt_ids[0] must be in [0, 512), but is 512"},
      Refusal{[](Request& r) { r.max_new_tokens = 0; }, "max_new_tokens must be at least 1, but is 0"},
      Refusal{[](Request& r) { r.max_new_tokens = -1; }, "max_new_tokens must be at least 1, but is -1"},
      Refusal{[](Request& r) {
                r.eos_token_ids = {7, 512};
              },
              "eos_token_ids[1] must be in [0, 512), but is 512"},
      Refusal{[](Request& r) { r.eos_token_ids = {-1}; }, "eos_token_ids[0] must be in [0, 512), but is -1"},
      Refusal{[](Request& r) { r.sampling.temperature = kNan; },
              "sampling.temperature must be finite and not negative, but is nan"},
      Refusal{[](Request& r) { r.sampling.temperature = kInfinity; },
              "sampling.temperature must be finite and not negative, but is inf"},
      Refusal{[](Request& r) { r.sampling.temperature = -1; },
              "sampling.temperature must be finite and not negative, but is -1.000000"},
      Refusal{[](Request& r) { r.sampling.top_k = -5; },
              "sampling.top_k must be at least 1, or 0 or -1 for all tokens, but is -5"},
      Refusal{[](Request& r) { r.sampling.top_p = kNan; }, "sampling.top_p must be in (0, 1], but is nan"},
      Refusal{[](Request& r) { r.sampling.top_p = 0; }, "sampling.top_p must be in (0, 1], but is 0.000000"},
      Refusal{[](Request& r) { r.sampling.top_p = 1.5; }, "sampling.top_p must be in (0, 1], but is 1.500000"},
      Refusal{[](Request& r) { r.sampling.min_p = kNan; }, "sampling.min_p must be in [0, 1], but is nan"},
      Refusal{[](Request& r) { r.sampling.min_p = -kInfinity; }, "sampling.min_p must be in [0, 1], but is -inf"});
  SyncEngine engine(default_options(64, 4));
  const Request neighbour = make_request("neighbour", tokens_from(10, 16), 12);
  engine.accept(neighbour);
  engine.run_steps(2);
  Request request = make_request("bad", {5, 6, 7, 8}, 4);
  refusal.change(request);
  const Result<std::string> submitted = engine.submit(request);
  CHECK(error_of(submitted) == refusal.message);
  CHECK(code_of(submitted) == ErrorCode::invalid_request);
  CHECK(engine.statistics().refused_requests == 1);
  CHECK(engine.statistics().accepted_requests == 1);
  check_live(engine);
  CHECK(engine.result("neighbour").tokens == expected_tokens(neighbour, default_options(1, 1).model, 1024));
}

// B60
TEST_CASE("top_k of 0 or -1 or more than the vocabulary means all tokens") {
  SyncEngine engine(default_options(64, 4));
  Request request = make_request("r", {5, 6}, 3);
  request.sampling.temperature = 1;
  request.sampling.top_k = GENERATE(0, -1, 1, 512, 513, std::numeric_limits<std::int32_t>::max());
  engine.accept(request);
  engine.run_steps(1);
  CHECK(engine.plans().front()->rows.front().sampling.top_k == std::max(request.sampling.top_k, 0));
  engine.run();
}

// B17
TEST_CASE("a request that the cache can never hold is refused and does not block the queue") {
  const std::int32_t num_groups = GENERATE(1, 2);
  SyncEngineOptions options = default_options(8 * num_groups, 4);
  options.groups.resize(static_cast<std::size_t>(num_groups), options.groups.front());
  SyncEngine engine(options);
  const auto submit = [&](const std::string& id, std::int32_t prompt, std::optional<std::int32_t> limit) {
    Request request = make_request(id, tokens_from(1, prompt), limit);
    return engine.submit(std::move(request));
  };
  CHECK(error_of(submit("a", 33, 1)) ==
        "prompt_ids (33 tokens) and max_new_tokens (1) are 34 tokens together, but what fits in the cache ends at 33");
  CHECK(code_of(submit("a", 33, 1)) == ErrorCode::request_too_long);
  check_live(engine);
  CHECK(error_of(submit("b", 28, 4)) == "");
  CHECK(error_of(submit("c", 31, 1)) == "");
  check_live(engine);
  CHECK(engine.result("b").tokens.size() == 4);
  CHECK(engine.result("c").tokens.size() == 1);
  CHECK(code_of(submit("d", 30, 50)) == ErrorCode::request_too_long);
  CHECK(error_of(submit("e", 4, std::nullopt)) == "");
  check_live(engine);
  CHECK(engine.result("e").tokens.size() == 29);
  CHECK(engine.result("e").reason == FinishReason::length);
}

// B95
TEST_CASE("a request ends at the model's context at the latest") {
  SyncEngine engine(default_options(512, 4));
  for (std::int32_t prompt = 1022; prompt <= 1026; ++prompt) {
    for (std::int32_t limit = 1; limit <= 3; ++limit) {
      const std::string id = std::to_string(prompt) + "+" + std::to_string(limit);
      const Result<std::string> submitted =
          engine.submit(make_request(id, std::vector<TokenId>(static_cast<std::size_t>(prompt), 7), limit));
      if (prompt + limit <= 1024) {
        CHECK(error_of(submitted) == "");
      } else {
        CHECK(error_of(submitted) == "prompt_ids (" + std::to_string(prompt) + " tokens) and max_new_tokens (" +
                                         std::to_string(limit) + ") are " + std::to_string(prompt + limit) +
                                         " tokens together, but the model's context ends at 1024");
        CHECK(code_of(submitted) == ErrorCode::request_too_long);
      }
    }
  }
  CHECK(code_of(engine.submit(make_request("full", std::vector<TokenId>(1024, 7), std::nullopt))) ==
        ErrorCode::request_too_long);
  engine.accept(make_request("open", std::vector<TokenId>(1000, 9), std::nullopt));
  engine.run();
  CHECK(engine.result("1022+2").tokens.size() == 2);
  CHECK(engine.result("open").tokens.size() == 24);
  CHECK(engine.result("open").reason == FinishReason::length);
}

// B66
TEST_CASE("a limit beyond what can be counted with is refused and not wrapped around") {
  SyncEngine engine(default_options(64, 4));
  const Result<std::string> submitted =
      engine.submit(make_request("r", {1, 2, 3}, std::numeric_limits<std::int32_t>::max()));
  CHECK(code_of(submitted) == ErrorCode::request_too_long);
}

// B23
TEST_CASE("an id in flight is refused and free again after its request has ended") {
  SyncEngine engine(default_options(64, 4));
  const Request first = make_request("a", tokens_from(10, 10), 20);
  engine.accept(first);
  const Result<std::string> second = engine.submit(make_request("a", {1}, 1));
  CHECK(code_of(second) == ErrorCode::duplicate_id);
  CHECK(error_of(second) == "id \"a\" is already in use by a request in flight");
  engine.run_steps(3);
  CHECK(code_of(engine.submit(make_request("a", {1}, 1))) == ErrorCode::duplicate_id);
  engine.run();
  CHECK(engine.result("a").tokens == expected_tokens(first, default_options(1, 1).model, 1024));
  const Request third = make_request("a", {1}, 1);
  engine.accept(third);
  engine.run();
  CHECK(engine.result("a").tokens == expected_tokens(third, default_options(1, 1).model, 1024));
}

// B23
TEST_CASE("the name of a live child is taken as well and a child does not take a live name") {
  SyncEngine engine(default_options(64, 4));
  engine.accept(make_request("a", tokens_from(10, 10), 20));
  REQUIRE(engine.fork("a", 1).value() == std::vector<std::string>{"a__child#0"});
  CHECK(code_of(engine.submit(make_request("a__child#0", {1}, 1))) == ErrorCode::duplicate_id);
  engine.accept(make_request("a__child#2", {1}, 30));
  const Result<std::vector<std::string>> forked = engine.fork("a", 2);
  CHECK(code_of(forked) == ErrorCode::duplicate_id);
  CHECK(error_of(forked) == "id \"a__child#2\" of a child is already in use by a request in flight");
  CHECK_FALSE(engine.has_result("a__child#1"));
  engine.run();
}

TEST_CASE("requests without an id get ids that nobody else has") {
  SyncEngine engine(default_options(64, 4));
  engine.accept(make_request("req_0", {1}, 3));
  CHECK(engine.accept(make_request("", {1}, 3)) == "req_1");
  CHECK(engine.accept(make_request("", {1}, 3)) == "req_2");
  engine.run();
}

TEST_CASE("a full queue refuses at once and takes requests again when it has moved") {
  SyncEngineOptions options = default_options(64, 4);
  options.config.max_waiting_requests = 2;
  options.config.max_batch_requests = 1;
  SyncEngine engine(options);
  engine.accept(make_request("a", {1}, 3));
  engine.accept(make_request("b", {2}, 3));
  const Result<std::string> refused = engine.submit(make_request("c", {3}, 3));
  CHECK(code_of(refused) == ErrorCode::overloaded);
  CHECK(error_of(refused) == "2 requests wait, 1 more would pass max_waiting_requests (2)");
  CHECK(code_of(engine.fork("a", 1)) == ErrorCode::overloaded);
  engine.run_steps(1);
  engine.accept(make_request("c", {3}, 3));
  engine.run();
  CHECK(engine.result("c").tokens.size() == 3);
}

}  // namespace
}  // namespace troupe::test

/// One request becomes several.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

const ModelDescription kModel = default_options(1, 1).model;

std::vector<LayerGroup> hybrid_groups() {
  return {{.type = AttentionType::sliding, .sliding_window = 6, .layers = {0}},
          {.type = AttentionType::full, .sliding_window = 0, .layers = {1}}};
}

ForkOverrides with_seed(std::uint64_t seed) { return {.sampling = SamplingParams{.seed = seed}, .max_new_tokens = {}}; }

/// Tokens of a child that was forked when the parent had `inherited` tokens.
std::vector<TokenId> child_tokens(const Request& parent, std::size_t inherited, std::uint64_t seed,
                                  std::int32_t max_new_tokens) {
  std::vector<TokenId> tokens = expected_tokens(parent, kModel, 1024);
  tokens.resize(inherited);
  std::vector<TokenId> past = parent.prompt_ids;
  past.insert(past.end(), tokens.begin(), tokens.end());
  const std::vector<TokenId> own = simulated_generate(
      past, {.seed = seed}, max_new_tokens - static_cast<std::int32_t>(inherited), kModel.vocab_size);
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}

std::int32_t blocks_in_use(const SyncEngine& engine) { return engine.statistics().blocks.in_use; }

// B40, B41
TEST_CASE("children go on from where their parent was and each has its own tokens") {
  const std::int32_t depth = GENERATE(1, 2);
  const std::int32_t known = GENERATE(1, 3, 8);
  const bool is_hybrid = GENERATE(false, true);
  SyncEngineOptions options = default_options(128, 4);
  options.config.pipeline_depth = depth;
  if (is_hybrid) {
    options.groups = hybrid_groups();
  }
  SyncEngine engine(options);
  Request parent = make_request("p", tokens_from(300, 13), 20);
  parent.streaming = true;
  engine.accept(parent);
  engine.run_until([&] { return engine.result("p").tokens.size() == static_cast<std::size_t>(known); });
  const std::vector<std::string> children = engine.fork("p", 3, with_seed(7)).value();
  CHECK(children == std::vector<std::string>{"p__child#0", "p__child#1", "p__child#2"});
  engine.run();
  CHECK(engine.result("p").tokens == expected_tokens(parent, kModel, 1024));
  // A row that was in flight is part of the past that they share.
  const std::size_t inherited = static_cast<std::size_t>(known) + (depth == 2 ? 1 : 0);
  for (const std::string& child : children) {
    CHECK(engine.result(child).tokens == child_tokens(parent, inherited, 7, 20));
    CHECK(engine.result(child).prompt_tokens == 13);
    CHECK(engine.result(child).cached_tokens == 13);
  }
}

TEST_CASE("a fork shares complete blocks and copies the last one") {
  SyncEngineOptions options = default_options(64, 4);
  options.config.pipeline_depth = 1;
  SyncEngine engine(options);
  engine.accept(make_request("p", tokens_from(300, 13), 20));
  engine.run_steps(2);
  CHECK(blocks_in_use(engine) == 4);
  (void)engine.fork("p", 5).value();
  engine.run_steps(1);
  // 14 tokens in the cache: three blocks shared, the fourth copied for each child.
  CHECK(blocks_in_use(engine) == 4 + 5);
  engine.run();
}

// B41
TEST_CASE("a request forked before its first token has children that sample their own first token") {
  const std::int32_t depth = GENERATE(1, 2);
  const std::int32_t length = GENERATE(1, 2, 7, 8, 9, 13, 40);
  const std::int32_t max_new_tokens = GENERATE(1, 2, 7);
  const std::int32_t max_batch_tokens = GENERATE(5, 512);
  const bool is_hybrid = GENERATE(false, true);
  SyncEngineOptions options = default_options(64, 8);
  options.config.pipeline_depth = depth;
  options.config.max_batch_tokens = max_batch_tokens;
  if (is_hybrid) {
    options.groups = hybrid_groups();
  }
  SyncEngine engine(options);
  const Request parent = make_request("p", tokens_from(300, length), max_new_tokens);
  engine.accept(parent);
  const std::vector<std::string> children = engine.fork("p", 3, with_seed(5)).value();
  engine.run();
  CHECK(engine.result("p").tokens == expected_tokens(parent, kModel, 1024));
  for (const std::string& child : children) {
    CHECK(engine.result(child).tokens == child_tokens(parent, 0, 5, max_new_tokens));
    CHECK(engine.result(child).reason == FinishReason::length);
  }
  if (length > 1) {
    // The prompt was computed once, up to its last token; that one is each member's own.
    CHECK(engine.statistics().forward_tokens == static_cast<std::uint64_t>(length - 1 + 4 + 4 * (max_new_tokens - 1)));
  }
}

TEST_CASE("children whose blocks do not fit wait as requests of their own") {
  SyncEngineOptions options = default_options(8, 4);
  options.config.pipeline_depth = 1;
  SyncEngine engine(options);
  Request parent = make_request("p", tokens_from(300, 13), 10);
  engine.accept(parent);
  engine.run_steps(2);
  const std::vector<std::string> children = engine.fork("p", 6, with_seed(3)).value();
  engine.run_steps(1);
  CHECK(engine.statistics().waiting_requests == 6);
  engine.run();
  CHECK(engine.result("p").tokens == expected_tokens(parent, kModel, 1024));
  for (const std::string& child : children) {
    CHECK(engine.result(child).tokens == child_tokens(parent, 2, 3, 10));
  }
}

TEST_CASE("all children get blocks or none") {
  SyncEngineOptions options = default_options(8, 4);
  options.config.pipeline_depth = 1;
  const std::int32_t num_children = GENERATE(4, 5);
  SyncEngine engine(options);
  engine.accept(make_request("p", tokens_from(300, 13), 10));
  engine.run_steps(2);
  REQUIRE(blocks_in_use(engine) == 4);
  (void)engine.fork("p", num_children).value();
  engine.run_steps(1);
  CHECK(blocks_in_use(engine) == (num_children == 4 ? 8 : 4));
  CHECK(engine.statistics().waiting_requests == (num_children == 4 ? 0 : 5));
  engine.run();
}

// B36, B40
TEST_CASE("parents and children end independently of each other") {
  const std::string first = GENERATE("p", "p__child#0");
  SyncEngine engine(default_options(64, 4));
  const Request parent = make_request("p", tokens_from(300, 13), 30);
  engine.accept(parent);
  engine.run_steps(2);
  (void)engine.fork("p", 1).value();
  engine.run_steps(3);
  REQUIRE(engine.cancel(first));
  engine.run();
  const std::string other = first == "p" ? "p__child#0" : "p";
  CHECK(engine.result(other).tokens == expected_tokens(parent, kModel, 1024));
}

TEST_CASE("children of a parent that ends before it could fork go on by themselves") {
  SyncEngine engine(default_options(64, 4));
  Request parent = make_request("p", tokens_from(300, 13), 30);
  parent.streaming = true;
  engine.accept(parent);
  const std::string how = GENERATE("cancelled", "length", "stop");
  if (how == "cancelled") {
    engine.run_steps(3);
    (void)engine.fork("p", 2).value();
    REQUIRE(engine.cancel("p"));
    engine.run();
    CHECK(engine.result("p__child#1").tokens == expected_tokens(parent, kModel, 1024));
    return;
  }
  SyncEngine other(default_options(64, 4));
  parent.max_new_tokens = how == "length" ? 5 : 30;
  if (how == "stop") {
    parent.eos_token_ids = {expected_tokens(parent, kModel, 1024)[4]};
  }
  other.accept(parent);
  other.run_until([&] { return other.result("p").tokens.size() == 4; });
  (void)other.fork("p", 1, {.sampling = SamplingParams{.seed = 9}, .max_new_tokens = 30}).value();
  other.run();
  CHECK(other.result("p").tokens.size() == 5);
  Request child = parent;
  child.prompt_ids.insert(child.prompt_ids.end(), other.result("p").tokens.begin(),
                          other.result("p").tokens.begin() + 4);
  child.sampling.seed = 9;
  child.max_new_tokens = 26;
  std::vector<TokenId> expected(other.result("p").tokens.begin(), other.result("p").tokens.begin() + 4);
  const std::vector<TokenId> own = expected_tokens(child, kModel, 1024);
  expected.insert(expected.end(), own.begin(), own.end());
  CHECK(other.result("p__child#0").tokens == expected);
}

TEST_CASE("children that have not been forked yet can be cancelled and forked themselves") {
  SyncEngine engine(default_options(64, 4));
  const Request parent = make_request("p", tokens_from(300, 13), 6);
  engine.accept(parent);
  (void)engine.fork("p", 3).value();
  CHECK(engine.statistics().waiting_requests == 4);
  REQUIRE(engine.cancel("p__child#1"));
  CHECK(engine.fork("p__child#2", 2).value() == std::vector<std::string>{"p__child#2__child#0", "p__child#2__child#1"});
  engine.run();
  for (const std::string id : {"p", "p__child#0", "p__child#2", "p__child#2__child#0", "p__child#2__child#1"}) {
    CHECK(engine.result(id).tokens == expected_tokens(parent, kModel, 1024));
  }
}

// B40
TEST_CASE("three generations of children and 64 of one parent are exact") {
  SyncEngine engine(default_options(512, 4));
  const Request parent = make_request("p", tokens_from(300, 13), 24);
  engine.accept(parent);
  std::string last = "p";
  for (int generation = 0; generation < 3; ++generation) {
    engine.run_steps(3);
    last = engine.fork(last, 1).value().front();
  }
  engine.run_steps(3);
  (void)engine.fork("p", 64).value();
  engine.run();
  CHECK(engine.results().size() == 68);
  for (const auto& [id, result] : engine.results()) {
    CHECK(result.tokens == expected_tokens(parent, kModel, 1024));
  }
}

TEST_CASE("numbers of children go on over all forks of a parent") {
  SyncEngine engine(default_options(64, 4));
  engine.accept(make_request("p", tokens_from(300, 13), 6));
  (void)engine.fork("p", 2).value();
  CHECK(engine.fork("p", 1).value() == std::vector<std::string>{"p__child#2"});
  engine.run();
}

// B43
TEST_CASE("a fork that makes no sense is refused and changes nothing") {
  SyncEngine engine(default_options(64, 4));
  const Request parent = make_request("p", tokens_from(300, 13), 20);
  engine.accept(parent);
  engine.run_steps(3);
  CHECK(error_of(engine.fork("nobody", 1)) == "no request \"nobody\" is in flight");
  const std::int32_t num_children = GENERATE(0, -1, 100'000);
  CHECK(error_of(engine.fork("p", num_children)) ==
        "num_children must be in [1, 1024], but is " + std::to_string(num_children));
  CHECK(code_of(engine.fork("p", 1, {.sampling = SamplingParams{.top_p = 2}, .max_new_tokens = {}})) ==
        ErrorCode::invalid_request);
  CHECK(error_of(engine.fork("p", 1, {.sampling = {}, .max_new_tokens = 3})) ==
        "max_new_tokens of children must be above the 3 tokens that they inherit, but is 3");
  CHECK(code_of(engine.fork("p", 1, {.sampling = {}, .max_new_tokens = 5000})) == ErrorCode::request_too_long);
  CHECK(error_of(engine.fork("p", 1, {.sampling = SamplingParams{.return_logprobs = true}, .max_new_tokens = {}})) ==
        "sampling.return_logprobs of children must be their parent's, for they inherit its tokens");
  CHECK(engine.statistics().waiting_requests == 0);
  CHECK(engine.statistics().accepted_requests == 1);
  engine.run();
  CHECK(engine.result("p").tokens == expected_tokens(parent, kModel, 1024));
}

TEST_CASE("a child whose limit the parent reaches before the fork ends with exactly that many tokens") {
  SyncEngine engine(default_options(64, 4));
  Request parent = make_request("p", tokens_from(300, 13), 20);
  parent.streaming = true;
  engine.accept(parent);
  engine.run_until([&] { return engine.result("p").tokens.size() == 3; });
  (void)engine.fork("p", 1, {.sampling = {}, .max_new_tokens = 4}).value();
  engine.run();
  std::vector<TokenId> expected = expected_tokens(parent, kModel, 1024);
  expected.resize(4);
  CHECK(engine.result("p__child#0").tokens == expected);
  CHECK(engine.result("p__child#0").reason == FinishReason::length);
}

// B39
TEST_CASE("families survive preemption") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SyncEngineOptions options = default_options(14, 4);
    options.seed = seed;
    options.config.safety_margin = 0;
    SyncEngine engine(options);
    const Request other = make_request("r0", tokens_from(40, 10), 30);
    const Request parent = make_request("p", tokens_from(300, 13), 20);
    engine.accept(other);
    engine.accept(parent);
    for (std::uint64_t i = 0; i < seed; ++i) {
      engine.advance();
    }
    if (engine.result("p").reason == FinishReason::none) {
      (void)engine.fork("p", 3).value();
    }
    engine.run();
    for (const auto& [id, result] : engine.results()) {
      REQUIRE(result.tokens == expected_tokens(id == "r0" ? other : parent, kModel, 1024));
    }
  }
}

}  // namespace
}  // namespace troupe::test

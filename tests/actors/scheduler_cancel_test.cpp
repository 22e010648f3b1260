/// Cancelling, at every point of a request's life.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

const ModelDescription kModel = default_options(1, 1).model;

TEST_CASE("a cancelled request gets its last output at once with all that it had") {
  SyncEngine engine(default_options(64, 4));
  const Request request = make_request("r", tokens_from(10, 6), 50);
  engine.accept(request);
  engine.run_steps(5);
  REQUIRE(engine.cancel("r"));
  const Collected& result = engine.result("r");
  CHECK(result.reason == FinishReason::cancelled);
  CHECK(result.num_outputs == 1);
  REQUIRE(result.tokens.size() == 5);
  const std::vector<TokenId> expected = expected_tokens(request, kModel, 1024);
  CHECK(std::equal(result.tokens.begin(), result.tokens.end(), expected.begin()));
  engine.run();
  CHECK(engine.statistics().cancelled_requests == 1);
}

TEST_CASE("a request that is not in flight cannot be cancelled") {
  SyncEngine engine(default_options(64, 4));
  const Result<void> cancelled = engine.cancel("nobody");
  CHECK(code_of(cancelled) == ErrorCode::unknown_request);
  CHECK(error_of(cancelled) == "no request \"nobody\" is in flight");
  engine.accept(make_request("r", {1}, 1));
  engine.run();
  CHECK(code_of(engine.cancel("r")) == ErrorCode::unknown_request);
}

TEST_CASE("a waiting request is cancelled without a trace") {
  SyncEngine engine(default_options(64, 4));
  engine.accept(make_request("r", {1, 2}, 5));
  REQUIRE(engine.cancel("r"));
  CHECK(engine.result("r").reason == FinishReason::cancelled);
  CHECK(engine.result("r").tokens.empty());
  engine.run();
  CHECK(engine.plans().empty());
}

// B24
TEST_CASE("a request cancelled between chunks has no row after it and frees its blocks before the next admission") {
  SyncEngineOptions options = default_options(16, 4);
  options.config.max_batch_tokens = 8;
  SyncEngine engine(options);
  const Request canary = make_request("canary", {5, 6, 7, 8}, 8);
  engine.accept(make_request("h44", tokens_from(50, 44), 12));
  engine.accept(canary);
  engine.run_steps(2);
  const std::size_t num_plans = engine.plans().size();
  const RequestId cancelled = engine.plans().front()->rows.front().request;
  REQUIRE(engine.cancel("h44"));
  CHECK(engine.result("h44").reason == FinishReason::cancelled);
  const Request next = make_request("p16", tokens_from(10, 16), 12);
  engine.accept(next);
  engine.run();
  for (std::size_t i = num_plans; i < engine.plans().size(); ++i) {
    for (const StepRow& row : engine.plans()[i]->rows) {
      CHECK(row.request != cancelled);
    }
  }
  CHECK(engine.result("canary").tokens == expected_tokens(canary, kModel, 1024));
  CHECK(engine.result("p16").tokens == expected_tokens(next, kModel, 1024));
}

// B25
TEST_CASE("cancelling all ends those that wait as well") {
  SyncEngineOptions options = default_options(64, 4);
  options.config.max_batch_requests = 2;
  SyncEngine engine(options);
  for (int i = 0; i < 10; ++i) {
    engine.accept(make_request("", tokens_from(i, 4), 64));
  }
  engine.run_steps(1);
  engine.cancel_all();
  for (const auto& [id, result] : engine.results()) {
    CHECK(result.reason == FinishReason::cancelled);
  }
  engine.run();
  CHECK(engine.statistics().cancelled_requests == 10);
}

// B21
TEST_CASE("cancelling preempted and running requests lets the others end") {
  const std::uint64_t seed = test_seed();
  INFO("TROUPE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    SyncEngineOptions options = default_options(16, 4);
    options.config.max_batch_requests = 4;
    options.config.safety_margin = 0;
    options.config.pipeline_depth = 1 + round % 2;
    options.seed = random();
    SyncEngine engine(options);
    std::vector<Request> requests;
    for (std::int32_t i = 0; i < 12; ++i) {
      requests.push_back(make_request("r" + std::to_string(i), tokens_from(i * 20, 10), 20));
      engine.accept(requests.back());
    }
    for (int i = 0; i < 4; ++i) {
      for (std::uint64_t steps = random() % 60; steps > 0; --steps) {
        engine.advance();
      }
      (void)engine.cancel("r" + std::to_string(i * 3 + static_cast<int>(random() % 3)));
    }
    engine.run();
    for (const Request& request : requests) {
      const Collected& result = engine.result(request.id);
      if (result.reason != FinishReason::cancelled) {
        REQUIRE(result.tokens == expected_tokens(request, kModel, 1024));
      }
    }
    REQUIRE(engine.statistics().finished_requests >= 8);
  }
}

// B31
TEST_CASE("results that name requests which have ended meanwhile change nothing") {
  const std::uint64_t seed = test_seed();
  INFO("TROUPE_SEED=" << seed);
  std::mt19937_64 random(seed);
  SyncEngineOptions options = default_options(128, 4);
  options.seed = random();
  SyncEngine engine(options);
  engine.keeps_plans = false;
  std::vector<std::string> live;
  for (std::int32_t i = 0; i < 5000; ++i) {
    live.push_back(engine.accept(make_request("", tokens_from(i % 400, 1 + i % 20), 1 + i % 20)));
    engine.advance();
    if (live.size() > 64) {
      const std::size_t victim = random() % live.size();
      (void)engine.cancel(live[victim]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    if (i % 500 == 0) {
      engine.clear_results();
    }
  }
  engine.run();
}

}  // namespace
}  // namespace troupe::test

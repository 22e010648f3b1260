/// Steps: budgets, chunks, depth, ends.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/bare_scheduler.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

std::size_t num_rows(const SyncEngine& engine) {
  std::size_t rows = 0;
  for (const auto& plan : engine.plans()) {
    rows += plan->rows.size();
  }
  return rows;
}

TEST_CASE("the next step is planned while one is in flight exactly at depth 2") {
  SyncEngineOptions options = default_options(64, 4);
  options.config.pipeline_depth = GENERATE(1, 2);
  BareScheduler bare(options);
  REQUIRE(bare.scheduler.submit(make_request("r", {1, 2, 3}, 5)));
  REQUIRE(bare.scheduler.plan_step());
  const std::optional<StepOrders> second = bare.scheduler.plan_step();
  REQUIRE(second.has_value() == (options.config.pipeline_depth == 2));
  CHECK(bare.scheduler.steps_in_flight() == options.config.pipeline_depth);
  CHECK_FALSE(bare.scheduler.plan_step().has_value());
  if (second) {
    // Its input is what the first step samples.
    CHECK(second->plan->token_ids == std::vector<TokenId>{-1});
    CHECK(second->plan->rows.front().input_step == 1);
    CHECK(second->plan->rows.front().input_row == 0);
    CHECK(second->plan->rows.front().past_length == 3);
  }
}

TEST_CASE("a request that ends by length costs one row for each token and none more") {
  SyncEngineOptions options = default_options(64, 4);
  options.config.pipeline_depth = GENERATE(1, 2);
  SyncEngine engine(options);
  engine.accept(make_request("r", tokens_from(10, 16), 12));
  engine.run();
  CHECK(num_rows(engine) == 12);
  CHECK(engine.statistics().forward_tokens == 16 + 11);
  CHECK(engine.statistics().generated_tokens == 12);
}

// B58
TEST_CASE("an end-of-sequence token ends a request and the token computed after it reaches nobody") {
  const std::int32_t depth = GENERATE(1, 2);
  SyncEngineOptions options = default_options(64, 4);
  options.config.pipeline_depth = depth;
  SyncEngine engine(options);
  Request request = make_request("r", tokens_from(10, 18), GENERATE(5, 6, 7, 12));
  const std::vector<TokenId> tokens = simulated_generate(request.prompt_ids, {}, 12, 512);
  request.eos_token_ids = {511, tokens[5]};
  REQUIRE(std::count(tokens.begin(), tokens.begin() + 5, tokens[5]) == 0);
  engine.accept(request);
  engine.run();
  const bool stops = *request.max_new_tokens > 5;
  CHECK(engine.result("r").tokens.size() == (stops ? 6 : 5));
  CHECK(engine.result("r").reason == (stops ? FinishReason::stop : FinishReason::length));
  const bool wastes = depth == 2 && *request.max_new_tokens > 6;
  CHECK(num_rows(engine) == (stops ? 6U : 5U) + (wastes ? 1U : 0U));
}

TEST_CASE("the model's end-of-sequence tokens count unless the request ignores them or names its own") {
  SyncEngineOptions options = default_options(64, 4);
  const std::vector<TokenId> prompt = tokens_from(10, 5);
  const std::vector<TokenId> tokens = simulated_generate(prompt, {}, 8, 512);
  options.model.eos_token_ids = {tokens[3]};
  SyncEngine engine(options);
  engine.accept(make_request("model", prompt, 8));
  Request request = make_request("ignores", prompt, 8);
  request.ignore_eos = true;
  engine.accept(request);
  request = make_request("own", prompt, 8);
  request.eos_token_ids = {tokens[1]};
  engine.accept(request);
  request = make_request("none", prompt, 8);
  request.eos_token_ids = std::vector<TokenId>{};
  engine.accept(request);
  engine.run();
  CHECK(engine.result("model").tokens.size() == 4);
  CHECK(engine.result("ignores").tokens.size() == 8);
  CHECK(engine.result("own").tokens.size() == 2);
  CHECK(engine.result("none").tokens.size() == 8);
}

TEST_CASE("a prompt longer than the budget goes in chunks and samples after the last one only") {
  SyncEngineOptions options = default_options(64, 4);
  options.config.max_batch_tokens = 8;
  SyncEngine engine(options);
  engine.accept(make_request("r", tokens_from(10, 20), 1));
  engine.run();
  REQUIRE(engine.plans().size() == 3);
  CHECK(engine.plans()[0]->rows[0].query_length == 8);
  CHECK_FALSE(engine.plans()[0]->rows[0].samples);
  CHECK(engine.plans()[1]->rows[0].past_length == 8);
  CHECK_FALSE(engine.plans()[1]->rows[0].samples);
  CHECK(engine.plans()[2]->rows[0].query_length == 4);
  CHECK(engine.plans()[2]->rows[0].samples);
}

// B103
TEST_CASE("every border between chunks gives the same token") {
  const std::int32_t block_size = GENERATE(1, 4, 16);
  for (std::int32_t budget = 1; budget <= 41; budget += 3) {
    SyncEngineOptions options = default_options(256, block_size);
    options.config.max_batch_tokens = budget;
    SyncEngine engine(options);
    for (std::int32_t length = 1; length <= 40; ++length) {
      const Request request = make_request("p" + std::to_string(length), tokens_from(20, length), 3);
      engine.accept(request);
      engine.run();
      REQUIRE(engine.result(request.id).tokens == expected_tokens(request, options.model, 1024));
    }
  }
}

TEST_CASE("no step exceeds its budgets") {
  SyncEngineOptions options = default_options(512, 4);
  options.config.max_batch_tokens = 20;
  options.config.max_batch_requests = 6;
  options.config.scheduler = GENERATE("fifo", "prefill_first");
  SyncEngine engine(options);
  for (std::int32_t i = 0; i < 20; ++i) {
    engine.accept(make_request("r" + std::to_string(i), tokens_from(i, 1 + i * 2), 10));
  }
  engine.run();
  for (const auto& plan : engine.plans()) {
    CHECK(plan->token_ids.size() <= 20);
    CHECK(plan->rows.size() <= 6);
  }
}

// B34
TEST_CASE("nothing is preempted or computed twice while there are blocks") {
  SyncEngine engine(default_options(512, 4));
  for (std::int32_t i = 0; i < 6; ++i) {
    engine.accept(make_request("r" + std::to_string(i), tokens_from(40 + 20 * i, 10), 30 - 5 * i));
  }
  engine.run();
  CHECK(engine.statistics().preemptions == 0);
  CHECK(engine.statistics().forward_tokens == 159);
}

TEST_CASE("a streaming request gets every token as it comes and the others get all at the end") {
  SyncEngine engine(default_options(64, 4));
  Request request = make_request("stream", tokens_from(10, 6), 7);
  request.streaming = true;
  engine.accept(request);
  engine.accept(make_request("whole", tokens_from(10, 6), 7));
  engine.run();
  CHECK(engine.result("stream").num_outputs == 7);
  CHECK(engine.result("whole").num_outputs == 1);
  CHECK(engine.result("stream").tokens == engine.result("whole").tokens);
}

TEST_CASE("log-probabilities come with the tokens that asked for them") {
  SyncEngine engine(default_options(64, 4));
  Request request = make_request("with", tokens_from(10, 6), 5);
  request.sampling.return_logprobs = true;
  engine.accept(request);
  engine.accept(make_request("without", tokens_from(10, 6), 5));
  engine.run();
  const Collected& with = engine.result("with");
  REQUIRE(with.logprobs.size() == 5);
  for (std::int32_t i = 0; i < 5; ++i) {
    const auto index = static_cast<std::size_t>(i);
    CHECK(with.logprobs[index] == simulated_logprob(with.tokens[index], 6 + i));
  }
  CHECK(engine.result("without").logprobs.empty());
}

TEST_CASE("a request's tokens do not depend on its neighbours or on the order of events") {
  const std::int32_t depth = GENERATE(1, 2);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SyncEngineOptions options = default_options(24, 4);
    options.config.pipeline_depth = depth;
    options.seed = seed;
    SyncEngine engine(options);
    std::vector<Request> requests;
    for (std::int32_t i = 0; i < 8; ++i) {
      requests.push_back(make_request("r" + std::to_string(i), tokens_from(i % 3, 3 + 4 * i), 20));
      requests.back().sampling.seed = static_cast<std::uint64_t>(i);
      engine.accept(requests.back());
    }
    engine.run();
    for (const Request& request : requests) {
      REQUIRE(engine.result(request.id).tokens == expected_tokens(request, options.model, 97));
    }
  }
}

TEST_CASE("a result of a step that is not the oldest in flight changes nothing") {
  SyncEngineOptions options = default_options(64, 4);
  BareScheduler bare(options);
  REQUIRE(bare.scheduler.submit(make_request("r", {1, 2, 3}, 5)));
  REQUIRE(bare.scheduler.plan_step());
  REQUIRE(bare.scheduler.plan_step());
  bare.settle(2, {7});
  bare.settle(99, {7});
  CHECK(bare.scheduler.steps_in_flight() == 2);
  CHECK(error_of(bare.scheduler.check_invariants()) == "");
}

TEST_CASE("a policy that asks for nonsense cannot break the books") {
  class Nonsense final : public SchedulingPolicy {
   public:
    [[nodiscard]] std::string_view name() const noexcept override { return "nonsense"; }
    [[nodiscard]] std::vector<Choice> decide(const SchedulerSnapshot& snapshot) const override {
      std::vector<Choice> choices{{.request = 999'999, .query_length = 1}};
      for (const auto* candidates : {&snapshot.waiting, &snapshot.active}) {
        for (const Candidate& candidate : *candidates) {
          choices.push_back({.request = candidate.request, .query_length = -3});
          choices.push_back({.request = candidate.request, .query_length = 1'000'000});
          choices.push_back({.request = candidate.request, .query_length = 1});
        }
      }
      return choices;
    }
  };
  SyncEngineOptions options = default_options(64, 4);
  options.policy = [] { return std::make_unique<Nonsense>(); };
  SyncEngine engine(options);
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < 6; ++i) {
    requests.push_back(make_request("r" + std::to_string(i), tokens_from(i, 5 + i), 9));
    engine.accept(requests.back());
  }
  engine.run();
  for (const Request& request : requests) {
    CHECK(engine.result(request.id).tokens == expected_tokens(request, options.model, 257));
  }
}

}  // namespace
}  // namespace troupe::test

/// Steps and rows that fail.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/bare_scheduler.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

using Kind = SimulatedFault::Kind;

const ModelDescription kModel = default_options(1, 1).model;

std::vector<Request> accept_eight(SyncEngine& engine) {
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < 8; ++i) {
    requests.push_back(make_request("r" + std::to_string(i), tokens_from(20 * i, 6 + i), 12));
    engine.accept(requests.back());
  }
  return requests;
}

std::vector<LayerGroup> hybrid_groups() {
  return {{.type = AttentionType::sliding, .sliding_window = 6, .layers = {0}},
          {.type = AttentionType::full, .sliding_window = 0, .layers = {1}}};
}

// B109
TEST_CASE("a step that fails once costs nobody anything but time") {
  const Kind kind = GENERATE(Kind::fail, Kind::fail_late, Kind::throw_exception, Kind::too_few_tokens);
  const StepId failing_step = GENERATE(1U, 2U, 5U);
  SyncEngineOptions options = default_options(128, 4);
  options.config.pipeline_depth = GENERATE(1, 2);
  if (GENERATE(false, true)) {
    options.groups = hybrid_groups();
  }
  options.executor.fault = [=](const StepPlan& plan) -> std::optional<SimulatedFault> {
    return plan.step == failing_step ? std::optional(SimulatedFault{.kind = kind}) : std::nullopt;
  };
  SyncEngine engine(options);
  const std::vector<Request> requests = accept_eight(engine);
  engine.run();
  for (const Request& request : requests) {
    CHECK(engine.result(request.id).tokens == expected_tokens(request, kModel, 1024));
  }
  CHECK(engine.statistics().failed_requests == 0);
}

// B109
TEST_CASE("the request whose steps always fail is the only one that fails") {
  const Kind kind = GENERATE(Kind::fail, Kind::fail_late, Kind::throw_exception, Kind::too_few_tokens);
  const std::int32_t from_length = GENERATE(0, 12);
  SyncEngineOptions options = default_options(128, 4);
  options.config.pipeline_depth = GENERATE(1, 2);
  options.config.max_batch_tokens = GENERATE(20, 512);
  options.executor.fault = [=](const StepPlan& plan) -> std::optional<SimulatedFault> {
    const bool has_culprit = std::ranges::any_of(plan.rows, [=](const StepRow& row) {
      return row.request == 4 && row.past_length + row.query_length > from_length;
    });
    return has_culprit ? std::optional(SimulatedFault{.kind = kind}) : std::nullopt;
  };
  SyncEngine engine(options);
  const std::vector<Request> requests = accept_eight(engine);
  engine.run();
  for (const Request& request : requests) {
    const Collected& result = engine.result(request.id);
    if (request.id != "r3") {
      CHECK(result.tokens == expected_tokens(request, kModel, 1024));
      continue;
    }
    CHECK(result.reason == FinishReason::failed);
    CHECK(result.error.code == ErrorCode::step_failed);
    CHECK(result.error.message != "");
  }
  const Request canary = make_request("canary", {5, 6, 7, 8}, 8);
  engine.accept(canary);
  engine.run();
  CHECK(engine.result("canary").tokens == expected_tokens(canary, kModel, 1024));
}

TEST_CASE("requests of a failed step run alone until they are past the place where it failed") {
  SyncEngineOptions options = default_options(128, 4);
  options.config.pipeline_depth = 1;
  options.executor.fault = [](const StepPlan& plan) -> std::optional<SimulatedFault> {
    return plan.step == 3 ? std::optional(SimulatedFault{}) : std::nullopt;
  };
  SyncEngine engine(options);
  accept_eight(engine);
  engine.run();
  std::vector<RequestId> alone;
  for (StepId step = 4; step < 12; ++step) {
    const StepPlan& plan = *engine.plans()[step - 1];
    REQUIRE(plan.rows.size() == 1);
    alone.push_back(plan.rows.front().request);
  }
  CHECK(alone == std::vector<RequestId>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(engine.plans()[11]->rows.size() == 8);
}

TEST_CASE("a row without a token fails its request and no other") {
  SyncEngineOptions options = default_options(128, 4);
  options.config.pipeline_depth = GENERATE(1, 2);
  options.executor.fault = [](const StepPlan& plan) -> std::optional<SimulatedFault> {
    return plan.step == 4 ? std::optional(SimulatedFault{.kind = Kind::nan_row, .row = 5}) : std::nullopt;
  };
  SyncEngine engine(options);
  const std::vector<Request> requests = accept_eight(engine);
  engine.run();
  for (const Request& request : requests) {
    const Collected& result = engine.result(request.id);
    const std::vector<TokenId> expected = expected_tokens(request, kModel, 1024);
    if (request.id == "r5") {
      CHECK(result.error.message == "simulated NaN logits in row 5");
      CHECK(result.tokens == std::vector<TokenId>(expected.begin(), expected.begin() + 3));
    } else {
      CHECK(result.tokens == expected);
    }
  }
}

TEST_CASE("a token outside the vocabulary fails its request") {
  SyncEngineOptions options = default_options(64, 4);
  BareScheduler bare(options);
  REQUIRE(bare.scheduler.submit(make_request("a", {1, 2, 3}, 5)));
  REQUIRE(bare.scheduler.submit(make_request("b", {1, 2, 3}, 5)));
  REQUIRE(bare.scheduler.plan_step());
  bare.settle(1, {GENERATE(-1, 512), 7});
  const std::vector<RequestOutput> outputs = bare.scheduler.take_outputs();
  REQUIRE(outputs.size() == 1);
  CHECK(outputs.front().id == "a");
  CHECK(outputs.front().error.code == ErrorCode::step_failed);
  CHECK(error_of(bare.scheduler.check_invariants()) == "");
}

TEST_CASE("children that a failed step should have made are made again") {
  const Kind kind = GENERATE(Kind::fail, Kind::fail_late);
  SyncEngineOptions options = default_options(64, 4);
  options.config.pipeline_depth = GENERATE(1, 2);
  bool fails = false;
  options.executor.fault = [&](const StepPlan&) -> std::optional<SimulatedFault> {
    return std::exchange(fails, false) ? std::optional(SimulatedFault{.kind = kind}) : std::nullopt;
  };
  SyncEngine engine(options);
  const Request parent = make_request("p", tokens_from(300, 13), 20);
  engine.accept(parent);
  engine.run_steps(3);
  const std::size_t num_plans = engine.plans().size();
  (void)engine.fork("p", 3).value();
  engine.run_until([&] { return engine.plans().size() > num_plans; });
  fails = true;
  engine.run();
  for (const auto& [id, result] : engine.results()) {
    CHECK(result.tokens == expected_tokens(parent, kModel, 1024));
  }
}

TEST_CASE("cancelling and failing and preempting the same request is no contradiction") {
  SyncEngineOptions options = default_options(12, 4);
  options.config.safety_margin = 0;
  options.executor.fault = [](const StepPlan& plan) -> std::optional<SimulatedFault> {
    return plan.step % 7 == 0 ? std::optional(SimulatedFault{}) : std::nullopt;
  };
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    options.seed = seed;
    SyncEngine engine(options);
    const std::vector<Request> requests = accept_eight(engine);
    for (std::uint64_t i = 0; i < 3 * seed; ++i) {
      engine.advance();
    }
    (void)engine.cancel("r0");
    (void)engine.cancel("r7");
    engine.run();
    for (const Request& request : requests) {
      const Collected& result = engine.result(request.id);
      if (result.reason == FinishReason::length) {
        REQUIRE(result.tokens == expected_tokens(request, kModel, 1024));
      }
    }
  }
}

}  // namespace
}  // namespace troupe::test

/// The engine with all its actors on the simulated executor, through the class Engine.

#include "actors/engine.hpp"

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/simulated_executor.hpp"
#include "tests/actors/engine_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/engine_client.hpp"

namespace troupe::test {
namespace {

using std::chrono::milliseconds;

TEST_CASE("requests through the engine get the tokens of the oracle") {
  EngineConfig config = small_config(64, 4);
  config.pipeline_depth = GENERATE(1, 2);
  Collector collector;
  const auto engine = start_simulated(config);
  for (int i = 0; i < 40; ++i) {
    REQUIRE(engine->submit(request_number(i), collector.callback()));
  }
  collector.wait_for(40);
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    check_answer(collector.answer(std::to_string(i)), request_number(i));
  }
  check_idle(*engine);
}

// B33
TEST_CASE("one engine serves one batch after the other") {
  Collector collector;
  const auto engine = start_simulated(small_config(64, 4));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) {
      // Ids are used again: those before have ended.
      REQUIRE(engine->submit(request_number(i), collector.callback()));
    }
    collector.wait_for(static_cast<std::size_t>(10 * (round + 1)));
  }
  CHECK(engine->statistics().finished_requests == 30);
  check_idle(*engine);
}

TEST_CASE("bad requests are refused with an error and harm nobody") {
  Collector collector;
  const auto engine = start_simulated(small_config(8, 4));
  Request good = request_number(1);
  good.max_new_tokens = 12;
  REQUIRE(engine->submit(good, collector.callback()));
  const auto refused_as = [&](Request request) {
    const Result<std::string> accepted = engine->submit(std::move(request), collector.callback());
    return accepted ? ErrorCode::none : accepted.error().code;
  };
  Request empty = request_number(2);
  empty.prompt_ids.clear();
  CHECK(refused_as(empty) == ErrorCode::invalid_request);
  Request outside = request_number(2);
  outside.prompt_ids.push_back(512);
  CHECK(refused_as(outside) == ErrorCode::invalid_request);
  Request no_tokens = request_number(2);
  no_tokens.max_new_tokens = 0;
  CHECK(refused_as(no_tokens) == ErrorCode::invalid_request);
  Request too_long = request_number(2);
  too_long.prompt_ids.assign(33, 5);
  CHECK(refused_as(too_long) == ErrorCode::request_too_long);
  collector.wait_for(1);
  check_answer(collector.answer("1"), good);
  CHECK(engine->statistics().refused_requests == 4);
  check_idle(*engine);
}

TEST_CASE("a cancelled request ends with what it had and an unknown id is an error") {
  Collector collector;
  const auto engine = start_simulated(small_config(64, 4), slow_steps(milliseconds(20)));
  Request request = request_number(1);
  request.streaming = true;
  request.max_new_tokens = 200;
  REQUIRE(engine->submit(request, collector.callback()));
  collector.wait_for_tokens("1", 3);
  CHECK(engine->cancel("1"));
  collector.wait_for(1);
  const Answer answer = collector.answer("1");
  CHECK(answer.reason == FinishReason::cancelled);
  CHECK(answer.tokens.size() >= 3);
  CHECK(answer.tokens == prefix_of_oracle(request, answer.tokens.size()));
  const Result<void> again = engine->cancel("1");
  REQUIRE_FALSE(again);
  CHECK(again.error().code == ErrorCode::unknown_request);
  check_idle(*engine);
}

TEST_CASE("children of a fork stream the parent's tokens and then their own") {
  Collector collector;
  const auto engine = start_simulated(small_config(128, 4), slow_steps(milliseconds(20)));
  Request request = request_number(1);
  request.streaming = true;
  request.max_new_tokens = 60;
  REQUIRE(engine->submit(request, collector.callback()));
  collector.wait_for_tokens("1", 5);
  const auto children = engine->fork("1", 3, {}, collector.callback());
  REQUIRE(children);
  CHECK(*children == std::vector<std::string>{"1__child#0", "1__child#1", "1__child#2"});
  collector.wait_for(4);
  for (const std::string& child : *children) {
    // Same seed, same parameters, same past: the same tokens.
    check_answer(collector.answer(child), request);
  }
  check_idle(*engine);
}

// B105, B109
TEST_CASE("a request that fails the runner's steps fails alone") {
  SimulatedExecutorOptions options;
  options.fault = [](const StepPlan& plan) -> std::optional<SimulatedFault> {
    for (const StepRow& row : plan.rows) {
      if (row.request == 3) {
        return SimulatedFault{.kind = SimulatedFault::Kind::throw_exception};
      }
    }
    return std::nullopt;
  };
  Collector collector;
  const auto engine = start_simulated(small_config(128, 4), options);
  for (int i = 1; i <= 8; ++i) {
    REQUIRE(engine->submit(request_number(i), collector.callback()));
  }
  collector.wait_for(8);
  for (int i = 1; i <= 8; ++i) {
    CAPTURE(i);
    if (i == 3) {
      CHECK(collector.answer("3").reason == FinishReason::failed);
      CHECK(collector.answer("3").error.code == ErrorCode::step_failed);
    } else {
      check_answer(collector.answer(std::to_string(i)), request_number(i));
    }
  }
  check_idle(*engine);
}

TEST_CASE("an executor that cannot be made is the error of starting the engine") {
  const auto engine = Engine::create(small_config(8, 4), simulated_model(), [] {
    return Result<std::unique_ptr<StepExecutor>>(fail(ErrorCode::malformed_file, "weights.bin is a poem"));
  });
  REQUIRE_FALSE(engine);
  CHECK(engine.error().code == ErrorCode::malformed_file);
  CHECK(engine.error().message == "weights.bin is a poem");
}

TEST_CASE("a factory that throws is the error of starting the engine") {
  const auto engine =
      Engine::create(small_config(8, 4), simulated_model(),
                     []() -> Result<std::unique_ptr<StepExecutor>> { throw std::runtime_error("boom"); });
  REQUIRE_FALSE(engine);
  CHECK(engine.error().message.find("boom") != std::string::npos);
}

TEST_CASE("wrong settings are refused before anything is spawned") {
  EngineConfig config = small_config(8, 4);
  config.scheduler = "random";
  const auto engine = Engine::create(config, simulated_model(), simulated_factory({}));
  REQUIRE_FALSE(engine);
  CHECK(engine.error().code == ErrorCode::invalid_request);
  CHECK(engine.error().message.find("random") != std::string::npos);
}

TEST_CASE("draining finishes what was accepted") {
  Collector collector;
  const auto engine = start_simulated(small_config(64, 4), slow_steps(milliseconds(1)));
  for (int i = 0; i < 10; ++i) {
    REQUIRE(engine->submit(request_number(i), collector.callback()));
  }
  engine->shutdown(ShutdownMode::drain, std::chrono::seconds(60));
  collector.wait_for(10);
  for (int i = 0; i < 10; ++i) {
    check_answer(collector.answer(std::to_string(i)), request_number(i));
  }
  CHECK(engine->statistics().finished_requests == 10);
  CHECK_FALSE(engine->submit(request_number(11), collector.callback()));
}

// B106
TEST_CASE("shutting down in the middle of a long step cancels everything and ends") {
  Collector collector;
  const auto engine = start_simulated(small_config(64, 4), slow_steps(milliseconds(300)));
  for (int i = 0; i < 10; ++i) {
    Request request = request_number(i);
    request.max_new_tokens = 200;
    REQUIRE(engine->submit(std::move(request), collector.callback()));
  }
  engine->shutdown(ShutdownMode::cancel, milliseconds(0));
  collector.wait_for(10);
  for (const auto& [id, answer] : collector.answers()) {
    CAPTURE(id);
    CHECK(answer.num_last_outputs == 1);
    CHECK(answer.reason == FinishReason::cancelled);
  }
}

TEST_CASE("a drain that takes too long ends with the grace") {
  Collector collector;
  const auto engine = start_simulated(small_config(64, 4), slow_steps(milliseconds(20)));
  Request request = request_number(1);
  request.max_new_tokens = 200;
  REQUIRE(engine->submit(request, collector.callback()));
  engine->shutdown(ShutdownMode::drain, milliseconds(100));
  collector.wait_for(1);
  CHECK(collector.answer("1").reason == FinishReason::cancelled);
}

// B31, B32, B110
TEST_CASE("many client threads submit fork and cancel and nothing is lost") {
  constexpr int kThreads = 8;
  constexpr int kRequests = 150;
  EngineConfig config = small_config(96, 4);
  config.max_batch_tokens = 64;
  config.pipeline_depth = GENERATE(1, 2);
  Collector collector;
  const auto engine = start_simulated(config);
  std::atomic<std::size_t> accepted = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kRequests; ++i) {
        Request request = request_number(thread * kRequests + i);
        const std::string id = request.id;
        request.streaming = i % 3 == 0;
        if (engine->submit(std::move(request), collector.callback())) {
          ++accepted;
        }
        if (i % 4 == 1) {
          (void)engine->cancel(id);
        }
        if (i % 7 == 2) {
          if (const auto children = engine->fork(id, 2, {}, collector.callback())) {
            accepted += children->size();
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  collector.wait_for(accepted);
  std::size_t num_exact = 0;
  for (const auto& [id, answer] : collector.answers()) {
    CAPTURE(id);
    CHECK(answer.num_last_outputs == 1);
    CHECK_FALSE(answer.output_after_last);
    const Request request = request_number(std::stoi(id));
    CHECK(answer.tokens == prefix_of_oracle(request, answer.tokens.size()));
    if (answer.reason == FinishReason::length) {
      CHECK(answer.tokens.size() == static_cast<std::size_t>(*request.max_new_tokens));
      ++num_exact;
    } else {
      CHECK(answer.reason == FinishReason::cancelled);
    }
  }
  CHECK(num_exact > kThreads * kRequests / 2);
  check_idle(*engine);
}

// B112
TEST_CASE("an idle engine sleeps") {
  Collector collector;
  const auto engine = start_simulated(small_config(64, 4));
  REQUIRE(engine->submit(request_number(1), collector.callback()));
  collector.wait_for(1);
  const std::uint64_t steps = engine->statistics().steps;
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(milliseconds(1000));
  const double cpu_seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(engine->statistics().steps == steps);
  WARN("CPU time of an idle second: " << cpu_seconds << " s");
}

}  // namespace
}  // namespace troupe::test

#pragma once

/// Engines on the simulated executor and requests whose tokens are known.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/engine.hpp"
#include "actors/simulated_executor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/engine_client.hpp"

namespace troupe::test {

inline ModelDescription simulated_model() {
  ModelDescription model;
  model.name = "simulated";
  model.vocab_size = 512;
  model.max_position_embeddings = 1024;
  model.layer_types.assign(2, AttentionType::full);
  model.kv_bytes_per_token_and_layer = 4;
  return model;
}

inline EngineConfig small_config(std::int32_t num_blocks, std::int32_t block_size) {
  EngineConfig config;
  config.num_blocks = num_blocks;
  config.block_size = block_size;
  return config;
}

/// Steps that really take that long.
inline SimulatedExecutorOptions slow_steps(std::chrono::milliseconds step) {
  SimulatedExecutorOptions options;
  options.step_ns = std::chrono::nanoseconds(step).count();
  options.real_time = true;
  return options;
}

inline ExecutorFactory simulated_factory(SimulatedExecutorOptions options) {
  return [options = std::move(options)] {
    return Result<std::unique_ptr<StepExecutor>>(std::make_unique<SimulatedExecutor>(options));
  };
}

inline std::unique_ptr<Engine> start_simulated(EngineConfig config, SimulatedExecutorOptions options = {}) {
  Result<std::unique_ptr<Engine>> engine =
      Engine::create(std::move(config), simulated_model(), simulated_factory(std::move(options)));
  INFO((engine ? "" : engine.error().message));
  REQUIRE(engine);
  return std::move(*engine);
}

/// A request named after its number: prompts of 1 to 24 tokens, some with common beginnings, 1 to 20 new tokens.
inline Request request_number(int number) {
  Request request;
  request.id = std::to_string(number);
  const int length = 1 + number * 7 % 24;
  for (int i = 0; i < length; ++i) {
    request.prompt_ids.push_back(i < 8 ? 100 + number % 3 : (number + i) % 512);
  }
  request.max_new_tokens = 1 + number * 5 % 20;
  request.sampling.seed = static_cast<std::uint64_t>(number);
  return request;
}

inline std::vector<TokenId> prefix_of_oracle(const Request& request, std::size_t num_tokens) {
  return simulated_generate(request.prompt_ids, request.sampling, static_cast<std::int32_t>(num_tokens),
                            simulated_model().vocab_size);
}

inline void check_answer(const Answer& answer, const Request& request) {
  CHECK(answer.num_last_outputs == 1);
  CHECK_FALSE(answer.output_after_last);
  CHECK(answer.error.message.empty());
  CHECK(answer.reason == FinishReason::length);
  CHECK(answer.tokens == prefix_of_oracle(request, static_cast<std::size_t>(*request.max_new_tokens)));
}

/// Nothing is in use, nothing is promised, and every invariant holds. Blocks come back a little after the last output.
inline void check_idle(const Engine& engine) {
  for (int i = 0; i < 2000 && engine.statistics().blocks.in_use > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Result<void> checked = engine.check_invariants();
  CHECK((checked ? "" : checked.error().message) == std::string());
  const EngineStatistics statistics = engine.statistics();
  CHECK(statistics.blocks.in_use == 0);
  CHECK(statistics.blocks.reserved == 0);
  CHECK(statistics.blocks.initialized + statistics.blocks.uninitialized == statistics.num_blocks);
  CHECK(statistics.running_requests == 0);
  CHECK(statistics.waiting_requests == 0);
}

}  // namespace troupe::test

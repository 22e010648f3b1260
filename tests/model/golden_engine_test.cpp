/// Real models through the whole engine, against what transformers generated.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/engine.hpp"
#include "model/load.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/engine_client.hpp"
#include "tests/support/golden_models.hpp"

namespace troupe::test {
namespace {

/// An engine on a model in float32, one thread: tests run beside others. The files outlive it.
std::unique_ptr<Engine> start(const ModelFiles& files, EngineConfig config) {
  config.poison_unwritten = true;
  Result<std::unique_ptr<Engine>> engine =
      Engine::create(std::move(config), describe(files, ComputeType::f32),
                     [&files] { return make_torch_executor(files, {.dtype = ComputeType::f32, .threads = 1}); });
  INFO((engine ? "" : engine.error().message));
  REQUIRE(engine);
  return std::move(*engine);
}

Request request_for(const GoldenPrompt& prompt, std::size_t number) {
  Request request;
  request.id = std::to_string(number);
  request.prompt_ids = prompt.prompt_ids;
  request.max_new_tokens = static_cast<std::int32_t>(prompt.greedy.size());
  request.ignore_eos = true;
  request.streaming = number % 2 == 0;
  request.sampling.return_logprobs = true;
  return request;
}

void check_answer(const Answer& answer, const GoldenPrompt& prompt) {
  CHECK(answer.error.message.empty());
  CHECK(answer.num_last_outputs == 1);
  CHECK_FALSE(answer.output_after_last);
  CHECK(answer.reason == FinishReason::length);
  CHECK(answer.prompt_tokens == static_cast<std::int32_t>(prompt.prompt_ids.size()));
  CHECK(answer.tokens == prompt.greedy);
  REQUIRE(answer.logprobs.size() == prompt.logprobs.size());
  for (std::size_t token = 0; token < prompt.logprobs.size(); ++token) {
    CAPTURE(token);
    CHECK(std::abs(answer.logprobs[token] - prompt.logprobs[token]) < 1e-3F);
  }
}

void check_idle(const Engine& engine) {
  const Result<void> checked = engine.check_invariants();
  CHECK((checked ? "" : checked.error().message) == std::string());
  const EngineStatistics statistics = engine.statistics();
  CHECK(statistics.blocks.in_use == 0);
  CHECK(statistics.blocks.reserved == 0);
  CHECK(statistics.blocks.initialized + statistics.blocks.uninitialized == statistics.num_blocks);
  CHECK(statistics.running_requests == 0);
  CHECK(statistics.waiting_requests == 0);
}

/// Waits until released blocks are back, which follows the last output.
void drain(Engine& engine) {
  for (int i = 0; i < 1000 && engine.statistics().blocks.in_use > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void check_all(const ModelFiles& files, const EngineConfig& config, const std::vector<GoldenPrompt>& prompts,
               bool one_at_a_time) {
  Collector collector;
  const std::unique_ptr<Engine> engine = start(files, config);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    REQUIRE(engine->submit(request_for(prompts[i], i), collector.callback()));
    if (one_at_a_time) {
      collector.wait_for(i + 1);
    }
  }
  collector.wait_for(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    CAPTURE(i);
    check_answer(collector.answer(std::to_string(i)), prompts[i]);
  }
  drain(*engine);
  check_idle(*engine);
}

TEST_CASE("the engine generates the tokens of transformers with llama_tiny") {
  const Result<ModelFiles> files = open_model(golden_path("models/llama_tiny"));
  REQUIRE(files);
  const auto prompts = read_golden_prompts(golden_path("models/llama_tiny/expected.json"));
  REQUIRE(prompts.size() == 12);
  EngineConfig config;
  config.block_size = GENERATE(4, 16);
  config.pipeline_depth = GENERATE(1, 2);
  config.num_blocks = 2048 / config.block_size;
  CAPTURE(config.block_size, config.pipeline_depth);

  SECTION("each prompt alone") { check_all(*files, config, prompts, /*one_at_a_time=*/true); }
  SECTION("all prompts at once") { check_all(*files, config, prompts, false); }
  SECTION("with seven tokens to a step") {
    config.max_batch_tokens = 7;
    check_all(*files, config, prompts, false);
  }
  SECTION("with a cache so small that requests wait") {
    std::size_t longest = 0;
    for (const GoldenPrompt& prompt : prompts) {
      longest = std::max(longest, prompt.prompt_ids.size() + prompt.greedy.size());
    }
    const auto needed = static_cast<std::int32_t>(longest) / config.block_size + 1;
    config.num_blocks = needed + needed / 4;
    check_all(*files, config, prompts, false);
  }
  SECTION("prefill first and without sharing") {
    config.scheduler = "prefill_first";
    config.prefix_sharing = false;
    config.max_batch_tokens = 16;
    check_all(*files, config, prompts, false);
  }
}

TEST_CASE("a second run of the same prompts is served from the cache with the same tokens") {
  const Result<ModelFiles> files = open_model(golden_path("models/llama_tiny"));
  REQUIRE(files);
  const auto prompts = read_golden_prompts(golden_path("models/llama_tiny/expected.json"));
  EngineConfig config;
  config.block_size = 4;
  config.num_blocks = 512;
  Collector collector;
  const std::unique_ptr<Engine> engine = start(*files, config);
  for (std::size_t round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      Request request = request_for(prompts[i], i);
      request.id += round == 0 ? " first" : " second";
      REQUIRE(engine->submit(std::move(request), collector.callback()));
    }
    collector.wait_for((round + 1) * prompts.size());
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    CAPTURE(i);
    check_answer(collector.answer(std::to_string(i) + " second"), prompts[i]);
    const auto whole_blocks = static_cast<std::int32_t>((prompts[i].prompt_ids.size() - 1) / 4 * 4);
    CHECK(collector.answer(std::to_string(i) + " second").cached_tokens == whole_blocks);
  }
}

TEST_CASE("a fork of a live request goes on with the parent's tokens") {
  const Result<ModelFiles> files = open_model(golden_path("models/llama_tiny"));
  REQUIRE(files);
  const auto prompts = read_golden_prompts(golden_path("models/llama_tiny/expected.json"));
  EngineConfig config;
  config.block_size = 4;
  config.num_blocks = 512;
  config.pipeline_depth = GENERATE(1, 2);
  Collector collector;
  const std::unique_ptr<Engine> engine = start(*files, config);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Request request = request_for(prompts[i], i);
    request.streaming = true;
    REQUIRE(engine->submit(std::move(request), collector.callback()));
  }
  std::size_t num_children = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    collector.wait_for_tokens(std::to_string(i), 3);
    // It may have ended meanwhile.
    if (engine->fork(std::to_string(i), 2, {}, collector.callback())) {
      num_children += 2;
    }
  }
  collector.wait_for(prompts.size() + num_children);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const char* child : {"", "__child#0", "__child#1"}) {
      const Answer answer = collector.answer(std::to_string(i) + child);
      if (answer.num_last_outputs > 0) {
        CAPTURE(i, child);
        CHECK(answer.tokens == prompts[i].greedy);
      }
    }
  }
  drain(*engine);
  check_idle(*engine);
}

TEST_CASE("the engine generates the tokens of transformers with SmolLM2") {
  const auto path = smollm2_path();
  if (!path) {
    return;
  }
  const Result<ModelFiles> files = open_model(*path);
  REQUIRE(files);
  const auto prompts = read_golden_prompts(golden_path("smollm2/expected.json"));
  REQUIRE(prompts.size() == 20);
  EngineConfig config;
  config.num_blocks = 256;
  check_all(*files, config, prompts, false);
}

}  // namespace
}  // namespace troupe::test

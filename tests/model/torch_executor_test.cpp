/// The LibTorch executor against what transformers generated, step by step and without a scheduler.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/load.hpp"
#include "tests/model/step_driver.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden_models.hpp"

namespace troupe::test {
namespace {

struct LoadedModel {
  ModelDescription description;
  std::unique_ptr<StepExecutor> executor;
};

LoadedModel load(const std::filesystem::path& path, ComputeType dtype) {
  Result<ModelFiles> files = open_model(path);
  REQUIRE(files);
  Result<std::unique_ptr<StepExecutor>> executor = make_torch_executor(*files, {.dtype = dtype, .threads = 1});
  REQUIRE(executor);
  return {describe(*files, dtype), std::move(*executor)};
}

std::vector<DrivenRequest> requests_for(const std::vector<GoldenPrompt>& prompts) {
  std::vector<DrivenRequest> requests;
  for (const GoldenPrompt& prompt : prompts) {
    requests.push_back({.prompt = prompt.prompt_ids,
                        .max_new_tokens = static_cast<std::int32_t>(prompt.greedy.size()),
                        .sampling = {.return_logprobs = true}});
  }
  return requests;
}

void check_against(const std::vector<GoldenPrompt>& prompts, const std::vector<DrivenRequest>& requests) {
  REQUIRE(prompts.size() == requests.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    CAPTURE(i);
    CHECK(requests[i].error.empty());
    CHECK(requests[i].tokens == prompts[i].greedy);
    REQUIRE(requests[i].logprobs.size() == prompts[i].logprobs.size());
    for (std::size_t token = 0; token < prompts[i].logprobs.size(); ++token) {
      CAPTURE(token);
      CHECK(std::abs(requests[i].logprobs[token] - prompts[i].logprobs[token]) < 1e-3F);
    }
  }
}

TEST_CASE("llama_tiny generates the tokens of transformers in float32") {
  const auto prompts = read_golden_prompts(golden_path("models/llama_tiny/expected.json"));
  REQUIRE(prompts.size() == 12);
  LoadedModel model = load(golden_path("models/llama_tiny"), ComputeType::f32);
  const std::int32_t block_size = GENERATE(4, 16);
  const bool ahead = GENERATE(false, true);
  CAPTURE(block_size, ahead);
  const DriverOptions options{.block_size = block_size, .num_blocks = 2048 / block_size, .ahead = ahead};

  SECTION("each prompt alone") {
    for (const GoldenPrompt& prompt : prompts) {
      auto requests = requests_for({prompt});
      drive(*model.executor, model.description, options, requests);
      check_against({prompt}, requests);
    }
  }
  SECTION("all prompts at once") {
    auto requests = requests_for(prompts);
    drive(*model.executor, model.description, options, requests);
    check_against(prompts, requests);
  }
  SECTION("with seven tokens to a step") {
    DriverOptions small = options;
    small.max_batch_tokens = 7;
    auto requests = requests_for(prompts);
    drive(*model.executor, model.description, small, requests);
    check_against(prompts, requests);
  }
}

TEST_CASE("llama_tiny in bfloat16 mostly agrees with float32") {
  const auto prompts = read_golden_prompts(golden_path("models/llama_tiny/expected.json"));
  LoadedModel model = load(golden_path("models/llama_tiny"), ComputeType::bf16);
  auto requests = requests_for(prompts);
  drive(*model.executor, model.description, {}, requests);
  int first_tokens_equal = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    REQUIRE(requests[i].tokens.size() == prompts[i].greedy.size());
    first_tokens_equal += requests[i].tokens.front() == prompts[i].greedy.front() ? 1 : 0;
  }
  CHECK(first_tokens_equal >= 10);
}

TEST_CASE("sampled tokens do not depend on neighbours chunks or pipelining") {
  const auto prompts = read_golden_prompts(golden_path("models/llama_tiny/expected.json"));
  LoadedModel model = load(golden_path("models/llama_tiny"), ComputeType::f32);
  const auto sampled = [&prompts] {
    auto requests = requests_for(prompts);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].sampling = {.temperature = 1.0F, .top_p = 0.95F, .seed = 17 + i};
    }
    return requests;
  };
  auto together = sampled();
  drive(*model.executor, model.description, {.ahead = true}, together);
  auto chunked = sampled();
  drive(*model.executor, model.description, {.block_size = 4, .num_blocks = 512, .max_batch_tokens = 5}, chunked);
  int differ_from_greedy = 0;
  for (std::size_t i = 0; i < together.size(); ++i) {
    CAPTURE(i);
    CHECK(together[i].tokens == chunked[i].tokens);
    differ_from_greedy += together[i].tokens != prompts[i].greedy ? 1 : 0;
  }
  CHECK(differ_from_greedy > 6);
}

TEST_CASE("SmolLM2 generates the tokens of transformers in float32") {
  const auto path = smollm2_path();
  if (!path) {
    return;
  }
  const auto prompts = read_golden_prompts(golden_path("smollm2/expected.json"));
  REQUIRE(prompts.size() == 20);
  LoadedModel model = load(*path, ComputeType::f32);
  auto requests = requests_for(prompts);
  drive(*model.executor, model.description, {.ahead = true}, requests);
  check_against(prompts, requests);
}

TEST_CASE("a step that does not fit the cache is an error and the next one is fine") {
  LoadedModel model = load(golden_path("models/llama_tiny"), ComputeType::f32);
  REQUIRE(model.executor->allocate_cache({.num_blocks = 4, .block_size = 4, .groups = {{.layers = {0, 1, 2, 3}}}}));
  const auto plan_with = [](StepId step, TokenId token) {
    return StepPlan{.step = step,
                    .rows = {{.request = 1, .past_length = 0, .query_length = 1, .samples = true}},
                    .token_ids = {token}};
  };
  const auto inputs_with = [](StepId step, BlockId block, std::int32_t slot) {
    return std::vector<GroupInputs>{
        {.step = step, .group = 0, .block_table = {block}, .block_table_offsets = {0, 1}, .slot_mapping = {slot}}};
  };
  CHECK(model.executor->execute(plan_with(1, 512), inputs_with(1, 0, 0)).error.code == ErrorCode::internal);
  CHECK(model.executor->execute(plan_with(2, 5), inputs_with(2, 4, 0)).error.code == ErrorCode::internal);
  CHECK(model.executor->execute(plan_with(3, 5), inputs_with(3, 0, 16)).error.code == ErrorCode::internal);
  CHECK(model.executor->execute(plan_with(4, 5), inputs_with(1, 0, 0)).error.code == ErrorCode::internal);
  CHECK(model.executor->execute(plan_with(5, 5), {}).error.code == ErrorCode::internal);
  const StepResult good = model.executor->execute(plan_with(6, 5), inputs_with(6, 0, 0));
  CHECK(good.error.code == ErrorCode::none);
  REQUIRE(good.token_ids.size() == 1);
  CHECK(good.token_ids[0] >= 0);
  CHECK(good.ended_ns >= good.started_ns);
}

TEST_CASE("a row that reads an unwritten slot fails alone") {
  LoadedModel model = load(golden_path("models/llama_tiny"), ComputeType::f32);
  REQUIRE(model.executor->allocate_cache(
      {.num_blocks = 4, .block_size = 4, .groups = {{.layers = {0, 1, 2, 3}}}, .poison_unwritten = true}));
  // The second request claims three cached tokens that nobody has computed.
  const StepPlan plan{.step = 1,
                      .rows = {{.request = 1, .past_length = 0, .query_length = 1, .query_start = 0, .samples = true},
                               {.request = 2, .past_length = 3, .query_length = 1, .query_start = 1, .samples = true}},
                      .token_ids = {5, 6}};
  const std::vector<GroupInputs> inputs = {
      {.step = 1, .group = 0, .block_table = {0, 1}, .block_table_offsets = {0, 1, 2}, .slot_mapping = {0, 7}}};
  const StepResult result = model.executor->execute(plan, inputs);
  CHECK(result.error.code == ErrorCode::none);
  REQUIRE(result.row_errors.size() == 1);
  CHECK(result.row_errors[0].first == 1);
  CHECK(result.row_errors[0].second.message.find("NaN") != std::string::npos);
  CHECK(result.token_ids[0] >= 0);
  CHECK(result.token_ids[1] == -1);
}

}  // namespace
}  // namespace troupe::test

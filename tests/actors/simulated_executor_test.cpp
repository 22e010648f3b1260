/// The simulated executor alone: it must find every fault that the engine around it could make.

#include "actors/simulated_executor.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"

namespace troupe::test {
namespace {

constexpr std::int32_t kBlockSize = 4;
constexpr std::int32_t kWindow = 6;

/// Inputs of a group for a step of one row.
GroupInputs make_inputs(StepId step, GroupId group, std::vector<BlockId> table, std::vector<std::int32_t> slots) {
  GroupInputs inputs;
  inputs.step = step;
  inputs.group = group;
  inputs.block_table_offsets = {0, static_cast<std::int32_t>(table.size())};
  inputs.block_table = std::move(table);
  inputs.slot_mapping = std::move(slots);
  return inputs;
}

/// A step of request 2, whose sequence is one token.
StepPlan plan_token(StepId step, TokenId token) {
  StepPlan plan;
  plan.step = step;
  plan.rows.emplace_back().request = 2;
  plan.rows.back().query_length = 1;
  plan.token_ids = {token};
  return plan;
}

/// A full and a sliding group over 16 blocks, and one request whose tables are {3, 5, 7} and {8, 9}.
struct Fixture {
  SimulatedExecutorOptions options;
  StepPlan plan;
  std::vector<GroupInputs> groups;

  explicit Fixture(SimulatedExecutorOptions executor_options = {}) : options(std::move(executor_options)) {}

  [[nodiscard]] std::unique_ptr<SimulatedExecutor> make_executor() const {
    auto executor = std::make_unique<SimulatedExecutor>(options);
    const LayerGroup full{.type = AttentionType::full, .sliding_window = 0, .layers = {0}};
    const LayerGroup sliding{.type = AttentionType::sliding, .sliding_window = kWindow, .layers = {1}};
    REQUIRE(executor->allocate_cache({.num_blocks = 16, .block_size = kBlockSize, .groups = {full, sliding}}));
    return executor;
  }

  /// Plans one row of the request's tokens 10, 11, 12, ...
  void plan_row(StepId step, std::int32_t past_length, std::int32_t query_length) {
    plan = StepPlan{.step = step, .rows = {}, .token_ids = tokens_from(10 + past_length, query_length)};
    plan.rows.push_back(
        {.request = 1, .past_length = past_length, .query_length = query_length, .samples = true, .sampling = {}});
    groups = {make_inputs(step, 0, {3, 5, 7}, {}), make_inputs(step, 1, {8, 9}, {})};
    for (std::int32_t position = past_length; position < past_length + query_length; ++position) {
      const auto slot = [&](const GroupInputs& inputs, std::int32_t place) {
        return inputs.block_table[static_cast<std::size_t>(place / kBlockSize)] * kBlockSize + place % kBlockSize;
      };
      const bool survives = past_length + query_length - position <= kWindow;
      groups[0].slot_mapping.push_back(slot(groups[0], position));
      groups[1].slot_mapping.push_back(survives ? slot(groups[1], position % kWindow) : -1);
    }
  }
};

std::string row_error(const StepResult& result) {
  return result.row_errors.empty() ? "" : result.row_errors.front().second.message;
}

TEST_CASE("a step samples what the oracle says in one chunk or in several") {
  Fixture fixture;
  const std::vector<TokenId> expected = simulated_generate(tokens_from(10, 10), {}, 1, 512);
  const std::int32_t chunk = GENERATE(1, 3, 7, 10);
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  StepResult result;
  StepId step = 1;
  for (std::int32_t past = 0; past < 10; past += chunk) {
    fixture.plan_row(step++, past, std::min(chunk, 10 - past));
    result = executor.execute(fixture.plan, fixture.groups);
    REQUIRE(row_error(result) == "");
  }
  CHECK(result.token_ids == expected);
}

TEST_CASE("the sampled token depends on every token before it and on the seed and on the position") {
  const std::vector<TokenId> prompt = tokens_from(10, 10);
  const std::vector<TokenId> expected = simulated_generate(prompt, {}, 4, 1 << 30);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    std::vector<TokenId> other = prompt;
    ++other[i];
    CHECK(simulated_generate(other, {}, 1, 1 << 30).front() != expected.front());
  }
  CHECK(simulated_generate(prompt, {.seed = 1}, 1, 1 << 30).front() != expected.front());
  CHECK(simulated_generate(tokens_from(10, 11), {}, 1, 1 << 30).front() != expected.front());
}

TEST_CASE("a row that reads what another sequence wrote fails") {
  Fixture fixture;
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 9);
  REQUIRE(row_error(executor.execute(fixture.plan, fixture.groups)) == "");

  SECTION("in a block of the full group") {
    const StepPlan thief = plan_token(2, 99);
    const std::vector<GroupInputs> inputs{make_inputs(2, 0, {3}, {12}), make_inputs(2, 1, {1}, {4})};
    REQUIRE(row_error(executor.execute(thief, inputs)) == "");
    fixture.plan_row(3, 9, 1);
    CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) ==
          "request 1 with 9 cached and 1 query tokens: slot 13 of group 0 holds position 1 of another sequence");
  }
  SECTION("in the window") {
    const StepPlan thief = plan_token(2, 99);
    const std::vector<GroupInputs> inputs{make_inputs(2, 0, {1}, {4}), make_inputs(2, 1, {9}, {36})};
    REQUIRE(row_error(executor.execute(thief, inputs)) == "");
    fixture.plan_row(3, 9, 1);
    CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) ==
          "request 1 with 9 cached and 1 query tokens: slot 36 of group 1 should hold position 4, but holds 0");
  }
}

TEST_CASE("a row that reads a slot that nobody wrote fails") {
  Fixture fixture;
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 9);
  REQUIRE(row_error(executor.execute(fixture.plan, fixture.groups)) == "");
  fixture.plan_row(2, 9, 1);
  fixture.groups[0].block_table[1] = 6;
  CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) ==
        "request 1 with 9 cached and 1 query tokens: slot 24 of group 0 should hold position 4, but holds -1");
}

TEST_CASE("a slot mapping that does not follow the block table fails") {
  Fixture fixture;
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 8);
  const std::size_t group = GENERATE(0U, 1U);
  fixture.groups[group].slot_mapping[1] = 60;
  const StepResult result = executor.execute(fixture.plan, fixture.groups);
  REQUIRE(result.row_errors.size() == 1);
  CHECK(result.row_errors.front().second.code == ErrorCode::internal);
  CHECK(result.token_ids == std::vector<TokenId>{-1});
}

TEST_CASE("a table that is too short fails") {
  Fixture fixture;
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 9);
  fixture.groups[0].block_table = {3, 5};
  fixture.groups[0].block_table_offsets = {0, 2};
  CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) ==
        "request 1 with 0 cached and 9 query tokens: the block table of group 0 has no block for position 8");
}

TEST_CASE("copies are made before the rows run") {
  Fixture fixture;
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 9);
  REQUIRE(row_error(executor.execute(fixture.plan, fixture.groups)) == "");
  fixture.plan_row(2, 9, 1);
  fixture.groups[0].copies = {{.source = 7, .destination = 2}};
  fixture.groups[0].block_table[2] = 2;
  fixture.groups[0].slot_mapping = {2 * kBlockSize + 1};
  CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) == "");
}

TEST_CASE("a row takes its token from the step that sampled it") {
  Fixture fixture;
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 5);
  const std::vector<TokenId> prompt = fixture.plan.token_ids;
  REQUIRE(row_error(executor.execute(fixture.plan, fixture.groups)) == "");
  fixture.plan_row(2, 5, 1);
  fixture.plan.token_ids = {-1};
  fixture.plan.rows[0].input_row = 0;
  SECTION("which is remembered") {
    fixture.plan.rows[0].input_step = 1;
    const StepResult result = executor.execute(fixture.plan, fixture.groups);
    CHECK(row_error(result) == "");
    CHECK(result.token_ids.front() == simulated_generate(prompt, {}, 2, 512)[1]);
  }
  SECTION("which must be there") {
    fixture.plan.rows[0].input_step = 7;
    CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) ==
          "request 1 with 5 cached and 1 query tokens: row 0 of step 7 has no token for it");
  }
}

TEST_CASE("inputs that do not belong to the step fail it") {
  Fixture fixture;
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 5);
  SECTION("another step's") { fixture.groups[1].step = 9; }
  SECTION("another group's") { fixture.groups[1].group = 0; }
  SECTION("too few groups") { fixture.groups.pop_back(); }
  SECTION("a slot mapping of another length") { fixture.groups[0].slot_mapping.pop_back(); }
  SECTION("offsets beyond the table") { fixture.groups[0].block_table_offsets = {0, 9}; }
  SECTION("token ids that no row has") { fixture.plan.token_ids.push_back(5); }
  CHECK(executor.execute(fixture.plan, fixture.groups).error.code == ErrorCode::internal);
}

TEST_CASE("faults happen as they are ordered") {
  using Kind = SimulatedFault::Kind;
  Kind kind = Kind::fail;
  Fixture fixture;
  fixture.options.step_ns = 1000;
  fixture.options.token_ns = 10;
  fixture.options.fault = [&](const StepPlan&) { return SimulatedFault{.kind = kind, .row = 0, .delay_ns = 500}; };
  const std::unique_ptr<SimulatedExecutor> owner = fixture.make_executor();
  SimulatedExecutor& executor = *owner;
  fixture.plan_row(1, 0, 5);
  SECTION("a failed step") {
    CHECK(executor.execute(fixture.plan, fixture.groups).error.code == ErrorCode::step_failed);
  }
  SECTION("a step that fails after it has written") {
    kind = Kind::fail_late;
    CHECK(executor.execute(fixture.plan, fixture.groups).error.code == ErrorCode::step_failed);
    kind = Kind::delay;
    fixture.plan_row(2, 5, 1);
    CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) == "");
  }
  SECTION("an exception") {
    kind = Kind::throw_exception;
    CHECK_THROWS_AS(executor.execute(fixture.plan, fixture.groups), std::bad_alloc);
  }
  SECTION("a missing token") {
    kind = Kind::too_few_tokens;
    CHECK(executor.execute(fixture.plan, fixture.groups).token_ids.empty());
  }
  SECTION("a row without a token") {
    kind = Kind::nan_row;
    CHECK(row_error(executor.execute(fixture.plan, fixture.groups)) == "simulated NaN logits in row 0");
  }
  SECTION("a late result in virtual time") {
    kind = Kind::delay;
    const StepResult result = executor.execute(fixture.plan, fixture.groups);
    CHECK(result.started_ns == 0);
    CHECK(result.ended_ns == 1000 + 5 * 10 + 500);
  }
}

}  // namespace
}  // namespace troupe::test

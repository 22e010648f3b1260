/// Blocks: reservation, admission, prefixes, preemption, and their way back.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/order_execution.hpp"
#include "tests/support/bare_scheduler.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

const ModelDescription kModel = default_options(1, 1).model;

/// Submits, runs to the end and checks the tokens.
const Collected& serve(SyncEngine& engine, const Request& request) {
  engine.accept(request);
  engine.run();
  CHECK(engine.result(request.id).tokens == expected_tokens(request, kModel, 1024));
  return engine.result(request.id);
}

std::int32_t blocks_held(const SyncEngine& engine) { return engine.statistics().blocks.in_use; }

TEST_CASE("a step reserves exactly the blocks that its tokens need") {
  SyncEngine engine(default_options(64, 4));
  engine.accept(make_request("r", tokens_from(10, 8), 6));
  engine.run_steps(1);
  // The prompt fills two blocks; the step after it, planned already, needs a third.
  CHECK(blocks_held(engine) == 3);
  engine.run_until([&] { return engine.has_result("r") && engine.result("r").reason != FinishReason::none; });
  CHECK(engine.plans().back()->rows.front().past_length == 12);
}

TEST_CASE("what was decided but does not fit has not changed") {
  SyncEngineOptions options = default_options(8, 4);
  options.config.scheduler = "prefill_first";
  SyncEngine engine(options);
  engine.accept(make_request("a", tokens_from(10, 16), 12));
  engine.run_steps(1);
  engine.accept(make_request("b", tokens_from(40, 20), 4));
  engine.run_steps(3);
  CHECK(engine.statistics().waiting_requests == 1);
  CHECK(engine.manager().counts().reserved <= 1);
  engine.run();
  CHECK(engine.result("b").tokens == expected_tokens(make_request("b", tokens_from(40, 20), 4), kModel, 33));
}

// B03 (a)
TEST_CASE("a running request keeps its blocks while others come and go around it") {
  SyncEngine engine(default_options(12, 4));
  Request prompt = make_request("p16x", tokens_from(10, 16), 12);
  prompt.prompt_ids.insert(prompt.prompt_ids.end(), {30, 31});
  engine.accept(prompt);
  engine.run_steps(2);
  std::vector<Request> others{make_request("q18", tokens_from(200, 18), 12),
                              make_request("r0", tokens_from(40, 10), 20)};
  for (const Request& other : others) {
    engine.accept(other);
  }
  engine.run();
  CHECK(engine.result("p16x").tokens == expected_tokens(prompt, kModel, 1024));
  for (const Request& other : others) {
    CHECK(engine.result(other.id).tokens == expected_tokens(other, kModel, 1024));
  }
}

// B03 (b)
TEST_CASE("a request that waits in vain holds no cached block") {
  SyncEngine engine(default_options(8, 4));
  serve(engine, make_request("p16", tokens_from(10, 16), 1));
  engine.accept(make_request("small", {5, 6, 7, 8}, 12));
  engine.run_steps(1);
  Request large = make_request("large", tokens_from(10, 16), 12);
  large.prompt_ids.insert(large.prompt_ids.end(), {30, 31});
  engine.accept(large);
  engine.run_steps(1);
  CHECK(engine.statistics().waiting_requests == 1);
  CHECK(blocks_held(engine) == 2);
  REQUIRE(engine.cancel("large"));
  engine.run();
  serve(engine, large);
}

// B04
TEST_CASE("a prefix is looked up anew whenever its request is admitted") {
  SyncEngine engine(default_options(10, 4));
  const bool with_other = GENERATE(false, true);
  serve(engine, make_request("p16", tokens_from(10, 16), 1));
  const Request growing = make_request("r0", tokens_from(40, 10), 30);
  Request hitting = make_request("p16x", tokens_from(10, 16), 4);
  hitting.prompt_ids.insert(hitting.prompt_ids.end(), {30, 31});
  engine.accept(growing);
  if (with_other) {
    engine.accept(make_request("q18", tokens_from(200, 18), 4));
  }
  engine.accept(hitting);
  engine.run();
  CHECK(engine.result("r0").tokens == expected_tokens(growing, kModel, 1024));
  CHECK(engine.result("p16x").tokens == expected_tokens(hitting, kModel, 1024));
  CHECK(engine.result("p16x").cached_tokens % 4 == 0);
  CHECK(engine.result("p16x").cached_tokens <= 16);
}

// B05
TEST_CASE("a prefix longer than the step's budget leaves room for what is to be computed") {
  SyncEngineOptions options = default_options(64, 4);
  options.config.max_batch_tokens = 8;
  SyncEngine engine(options);
  serve(engine, make_request("seq", tokens_from(50, 24), 1));
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < 3; ++i) {
    requests.push_back(make_request("r" + std::to_string(i), tokens_from(240 + 20 * i, 10), 30));
  }
  requests.push_back(make_request("h44", tokens_from(50, 44), 12));
  for (const Request& request : requests) {
    engine.accept(request);
  }
  std::size_t most_blocks = 0;
  engine.run_until([&] {
    for (const auto& [number, table] : engine.allocator(0).block_tables()) {
      most_blocks = std::max(most_blocks, table.size());
    }
    return false;
  });
  engine.check_idle();
  for (const Request& request : requests) {
    CHECK(engine.result(request.id).tokens == expected_tokens(request, kModel, 1024));
  }
  CHECK(engine.result("h44").cached_tokens == 24);
  CHECK(most_blocks == 14);
}

// B06
TEST_CASE("of a prompt that is cached in full the last token is computed again") {
  const std::int32_t length = GENERATE(1, 4, 7, 8, 9, 16, 17);
  SyncEngineOptions options = default_options(64, 4);
  options.config.pipeline_depth = GENERATE(1, 2);
  SyncEngine engine(options);
  const std::int32_t cached = 4 * ((length - 1) / 4);
  for (int i = 0; i < 3; ++i) {
    const Request request = make_request("in turn " + std::to_string(i), tokens_from(300, length), 12);
    CHECK(serve(engine, request).cached_tokens == (i == 0 ? 0 : cached));
  }
  for (int i = 0; i < 3; ++i) {
    engine.accept(make_request("at once " + std::to_string(i), tokens_from(300, length), 12));
  }
  engine.run();
  for (int i = 0; i < 3; ++i) {
    CHECK(engine.result("at once " + std::to_string(i)).tokens == engine.result("in turn 0").tokens);
  }
}

// B08
TEST_CASE("a small cache serves two prompts in turn for ever") {
  SyncEngine engine(default_options(6, 4));
  for (int round = 0; round < 20; ++round) {
    serve(engine, make_request("p" + std::to_string(round), tokens_from(10, 16), 4));
    serve(engine, make_request("q" + std::to_string(round), tokens_from(200, 18), 4));
  }
}

// B09
TEST_CASE("requests shorter than a block leave nothing behind even if a third is cancelled") {
  SyncEngine engine(default_options(16, 16));
  std::vector<std::string> live;
  for (std::int32_t i = 0; i < 2000; ++i) {
    live.push_back(engine.accept(make_request("", tokens_from(i % 100, 1 + i % 3), 1 + i % 2)));
    if (live.size() == 8) {
      for (std::size_t j = 0; j < live.size(); j += 3) {
        (void)engine.cancel(live[j]);
      }
      engine.run_steps(2);
      live.clear();
    }
  }
  engine.run();
}

// B10
TEST_CASE("a shared block counts once") {
  SyncEngine engine(default_options(64, 4));
  serve(engine, make_request("p16", tokens_from(10, 16), 1));
  for (std::int32_t i = 0; i < 16; ++i) {
    Request request = make_request("r" + std::to_string(i), tokens_from(10, 16), 8);
    request.prompt_ids.insert(request.prompt_ids.end(), {30 + i, 60 + i});
    engine.accept(request);
  }
  std::int32_t most_in_use = 0;
  engine.run_until([&] {
    const BlockCounts counts = engine.statistics().blocks;
    CHECK(counts.in_use + counts.initialized + counts.uninitialized == 64);
    most_in_use = std::max(most_in_use, counts.in_use);
    return false;
  });
  engine.check_idle();
  CHECK(engine.statistics().cached_tokens == 256);
  CHECK(engine.statistics().preemptions == 0);
  // Four shared blocks, and at most three of each request's own.
  CHECK(most_in_use > 16 * 2);
  CHECK(most_in_use <= 4 + 16 * 3);
}

// B11
TEST_CASE("of a cached prompt the last blocks are evicted first") {
  SyncEngine engine(default_options(12, 4));
  serve(engine, make_request("x", tokens_from(10, 32), 1));
  serve(engine, make_request("q18", tokens_from(200, 18), 4));
  CHECK(serve(engine, make_request("x again", tokens_from(10, 32), 1)).cached_tokens == 24);
}

// B13
TEST_CASE("equal hashes of different tokens never give a wrong hit") {
  SyncEngineOptions options = default_options(64, 4);
  options.manager.hash = [](std::optional<BlockHash>, std::span<const TokenId> tokens, GroupId) {
    return BlockHash{.low = static_cast<std::uint64_t>(tokens.front() & 7), .high = 0};
  };
  SyncEngine engine(options);
  for (std::int32_t i = 0; i < 300; ++i) {
    serve(engine, make_request("r" + std::to_string(i), tokens_from(i, 16), 3));
  }
}

TEST_CASE("a request that may not share neither finds nor leaves prefixes") {
  SyncEngine engine(default_options(64, 4));
  Request secret = make_request("secret", tokens_from(10, 16), 2);
  secret.prefix_sharing = false;
  serve(engine, secret);
  CHECK(engine.statistics().blocks.initialized == 0);
  CHECK(serve(engine, make_request("open", tokens_from(10, 16), 2)).cached_tokens == 0);
  secret.id = "secret again";
  CHECK(serve(engine, secret).cached_tokens == 0);
  CHECK(serve(engine, make_request("open again", tokens_from(10, 16), 2)).cached_tokens == 12);
}

TEST_CASE("caches of several groups serve no prefixes") {
  SyncEngineOptions options = default_options(128, 4);
  options.groups.push_back({.type = AttentionType::sliding, .sliding_window = 8, .layers = {1}});
  SyncEngine engine(options);
  serve(engine, make_request("first", tokens_from(10, 16), 2));
  CHECK(serve(engine, make_request("second", tokens_from(10, 16), 2)).cached_tokens == 0);
}

TEST_CASE("when blocks are short the youngest request is preempted and loses no token") {
  const std::int32_t depth = GENERATE(1, 2);
  const std::string scheduler = GENERATE("fifo", "prefill_first");
  SyncEngineOptions options = default_options(12, 4);
  options.config.pipeline_depth = depth;
  options.config.scheduler = scheduler;
  options.config.safety_margin = 0;
  SyncEngine engine(options);
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < 6; ++i) {
    requests.push_back(make_request("r" + std::to_string(i), tokens_from(40 + 20 * i, 10), 30));
    requests.back().streaming = true;
    engine.accept(requests.back());
  }
  std::vector<std::string> ends;
  engine.run_until([&] {
    for (const Request& request : requests) {
      if (engine.result(request.id).reason != FinishReason::none && std::ranges::find(ends, request.id) == ends.end()) {
        ends.push_back(request.id);
      }
    }
    return false;
  });
  engine.check_idle();
  CHECK(engine.statistics().preemptions > 0);
  // The oldest is never the victim, so requests end in their order.
  CHECK(ends == std::vector<std::string>{"r0", "r1", "r2", "r3", "r4", "r5"});
  for (const Request& request : requests) {
    CHECK(engine.result(request.id).tokens == expected_tokens(request, kModel, 1024));
  }
}

TEST_CASE("a request that fills the whole cache is served between others") {
  const std::string scheduler = GENERATE("fifo", "prefill_first");
  SyncEngineOptions options = default_options(8, 4);
  options.config.scheduler = scheduler;
  SyncEngine engine(options);
  std::vector<Request> requests;
  for (std::int32_t i = 0; i < 9; ++i) {
    const bool is_large = i % 3 == 1;
    requests.push_back(make_request("r" + std::to_string(i), tokens_from(30 * i, is_large ? 28 : 3), is_large ? 5 : 6));
    engine.accept(requests.back());
  }
  engine.run();
  for (const Request& request : requests) {
    CHECK(engine.result(request.id).tokens == expected_tokens(request, kModel, 1024));
  }
}

TEST_CASE("a large request is not overtaken for ever by small ones") {
  SyncEngine engine(default_options(24, 4));
  for (int i = 0; i < 10; ++i) {
    engine.accept(make_request("", tokens_from(i, 4), 4));
  }
  const Request large = make_request("large", tokens_from(10, 80), 4);
  engine.accept(large);
  int num_small = 0;
  engine.run_until([&] {
    if (engine.statistics().waiting_requests < 5) {
      engine.accept(make_request("", tokens_from(num_small % 50, 4), 4));
      ++num_small;
    }
    return engine.result("large").reason != FinishReason::none;
  });
  CHECK(num_small < 100);
  CHECK(engine.result("large").tokens == expected_tokens(large, kModel, 1024));
  engine.run();
}

TEST_CASE("blocks are asked back before anybody is preempted") {
  SyncEngineOptions options = default_options(8, 4);
  options.config.pipeline_depth = 1;
  options.config.safety_margin = 0;
  BareScheduler bare(options);
  const std::unique_ptr<CacheAllocator> allocator = make_cache_allocator(0, options.groups[0], bare.manager, true);
  const auto run = [&](StepOrders orders) {
    REQUIRE(execute_group_orders(*allocator, std::move(orders.groups[0]), orders.plan.get()));
    return orders;
  };
  // Three requests fill the cache; then one of them is cancelled and the others need a block each.
  for (const std::string id : {"a", "b", "c"}) {
    REQUIRE(bare.scheduler.submit(make_request(id, tokens_from(id[0], id == "c" ? 16 : 8), 4)));
  }
  StepOrders first = run(bare.scheduler.plan_step().value());
  REQUIRE(first.plan->rows.size() == 3);
  REQUIRE(bare.manager.num_available_blocks() == 0);
  bare.settle(1, {1, 2, 3});
  REQUIRE(bare.scheduler.cancel("c"));

  const std::optional<StepOrders> housekeeping = bare.scheduler.plan_step();
  REQUIRE(housekeeping.has_value());
  CHECK(housekeeping->plan == nullptr);
  CHECK(housekeeping->groups[0].releases.size() == 1);
  // Before the acknowledgement there is nothing to plan, and nobody to preempt.
  CHECK_FALSE(bare.scheduler.plan_step().has_value());
  const std::uint64_t ticket = run(*housekeeping).ticket;
  bare.scheduler.acknowledge(0, ticket);
  const std::optional<StepOrders> second = bare.scheduler.plan_step();
  REQUIRE(second.has_value());
  CHECK(second->plan->rows.size() == 2);
  EngineStatistics statistics;
  bare.scheduler.add_statistics(statistics);
  CHECK(statistics.preemptions == 0);
}

TEST_CASE("complete blocks are ordered to be hashed before they are released") {
  SyncEngineOptions options = default_options(8, 4);
  BareScheduler bare(options);
  REQUIRE(bare.scheduler.submit(make_request("a", tokens_from(10, 8), 1)));
  REQUIRE(bare.scheduler.plan_step());
  bare.settle(1, {1});
  const std::optional<StepOrders> orders = bare.scheduler.plan_step();
  REQUIRE(orders.has_value());
  REQUIRE(orders->groups[0].completions.size() == 1);
  CHECK(orders->groups[0].completions[0].num_complete_blocks == 2);
  CHECK(orders->groups[0].completions[0].tokens == tokens_from(10, 8));
  CHECK(orders->groups[0].releases.size() == 1);
}

TEST_CASE("the last release goes out although nothing is left to plan") {
  SyncEngine engine(default_options(8, 4));
  engine.accept(make_request("a", tokens_from(10, 8), 1));
  engine.run();
  CHECK(engine.num_housekeepings() == 1);
  CHECK(engine.statistics().blocks.in_use == 0);
}

}  // namespace
}  // namespace troupe::test

/// Random operations in random order, on every shape of cache. Whatever happens, a request gets the tokens that it
/// would get alone, every invariant holds after every step, and nothing is left at the end.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/requests.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/sync_engine.hpp"

namespace troupe::test {
namespace {

constexpr std::int32_t kContext = 96;

std::vector<LayerGroup> make_groups(int kind) {
  const LayerGroup full{.type = AttentionType::full, .sliding_window = 0, .layers = {0}};
  const auto sliding = [](std::int32_t window) {
    return LayerGroup{.type = AttentionType::sliding, .sliding_window = window, .layers = {1}};
  };
  switch (kind) {
    case 0:
      return {full};
    case 1:
      return {sliding(8), full};
    case 2:
      return {full, full};
    case 3:
      return {sliding(1)};
    default:
      return {full, sliding(5), sliding(16)};
  }
}

/// One life of an engine under random operations.
class Stress {
 public:
  Stress(std::uint64_t seed, std::int32_t depth, bool with_faults) : random_(seed) {
    options_ = default_options(0, pick({1, 2, 4, 8, 16}));
    EngineConfig& config = options_.config;
    // Most lives have one full group: the only shape with prefix sharing.
    options_.groups = make_groups(draw(0, 1) == 0 ? 0 : draw(1, 4));
    const std::int32_t slots = draw(1, 6) * kContext / 2 * static_cast<std::int32_t>(options_.groups.size());
    config.num_blocks = std::max(slots / config.block_size, 2 * static_cast<std::int32_t>(options_.groups.size()));
    config.max_batch_tokens = pick({1, 3, 16, 64, 256});
    config.max_batch_requests = pick({1, 4, 64});
    config.max_waiting_requests = pick({3, 50});
    config.scheduler = draw(0, 1) == 0 ? "fifo" : "prefill_first";
    config.safety_margin = draw(0, 2) == 0 ? 0.0 : -1.0;
    config.pipeline_depth = depth;
    config.prefix_sharing = draw(0, 3) != 0;
    options_.model.max_position_embeddings = kContext;
    options_.model.vocab_size = 64;
    options_.model.eos_token_ids = {0, 1};
    options_.seed = random_();
    if (draw(0, 3) == 0) {
      // Few hashes, many collisions.
      options_.manager.hash = [](std::optional<BlockHash>, std::span<const TokenId> tokens, GroupId) {
        return BlockHash{.low = static_cast<std::uint64_t>(tokens.front() % 4), .high = 0};
      };
    }
    if (with_faults) {
      options_.executor.fault = [this](const StepPlan& plan) { return draw_fault(plan); };
    }
    engine_.emplace(options_);
    engine_->keeps_plans = false;
  }

  void operate(int num_operations) {
    for (int i = 0; i < num_operations; ++i) {
      const std::int32_t kind = draw(0, 99);
      if (kind < 45) {
        submit();
      } else if (kind < 55) {
        fork();
      } else if (kind < 70) {
        cancel();
      } else if (kind < 72) {
        engine_->run_until([] { return false; });
      } else if (kind == 72) {
        engine_->cancel_all();
      } else {
        // Starve: let nothing but the scheduler move for a while, or everything.
        engine_->run_steps(draw(1, 4));
      }
      for (std::int32_t step = draw(0, 8); step > 0; --step) {
        engine_->advance();
      }
    }
    engine_->run();
    verify();
  }

 private:
  struct Expected {
    Request request;
    /// Empty for a request that was submitted.
    std::string parent;
  };

  std::int32_t draw(std::int32_t lowest, std::int32_t highest) {
    return std::uniform_int_distribution<std::int32_t>(lowest, highest)(random_);
  }
  std::int32_t pick(std::vector<std::int32_t> values) {
    return values[static_cast<std::size_t>(draw(0, static_cast<std::int32_t>(values.size()) - 1))];
  }

  std::optional<SimulatedFault> draw_fault(const StepPlan& plan) {
    using Kind = SimulatedFault::Kind;
    if (draw(0, 19) != 0) {
      return std::nullopt;
    }
    const std::array kinds{Kind::fail, Kind::fail_late, Kind::throw_exception, Kind::too_few_tokens, Kind::nan_row};
    return SimulatedFault{.kind = kinds.at(static_cast<std::size_t>(draw(0, 4))),
                          .row = draw(0, static_cast<std::int32_t>(plan.rows.size()) - 1)};
  }

  std::string pick_live() {
    std::vector<std::string> live;
    for (const auto& [id, collected] : engine_->results()) {
      if (collected.reason == FinishReason::none) {
        live.push_back(id);
      }
    }
    return live.empty() ? "nobody"
                        : live[static_cast<std::size_t>(draw(0, static_cast<std::int32_t>(live.size()) - 1))];
  }

  void submit() {
    // Prompts of few families, so that prefixes meet.
    Request request = make_request("", tokens_from(draw(0, 2) * 8, draw(1, 40)), std::nullopt);
    if (draw(0, 3) == 0) {
      request.prompt_ids.back() = draw(0, 63);
    }
    if (draw(0, 9) != 0) {
      request.max_new_tokens = draw(1, 40);
    }
    request.ignore_eos = draw(0, 1) == 0;
    if (draw(0, 4) == 0) {
      request.eos_token_ids = {5, 9, 33};
    }
    request.sampling.seed = static_cast<std::uint64_t>(draw(0, 3));
    request.sampling.return_logprobs = draw(0, 3) == 0;
    request.streaming = draw(0, 1) == 0;
    request.prefix_sharing = draw(0, 5) != 0;
    if (const Result<std::string> id = engine_->submit(request); id) {
      expected_[*id] = {.request = request, .parent = ""};
    } else {
      const ErrorCode code = id.error().code;
      CHECK((code == ErrorCode::overloaded || code == ErrorCode::request_too_long));
    }
  }

  void fork() {
    const std::string parent = pick_live();
    ForkOverrides overrides;
    if (draw(0, 1) == 0) {
      overrides.sampling = SamplingParams{.seed = static_cast<std::uint64_t>(draw(4, 9))};
      overrides.sampling->return_logprobs =
          expected_.contains(parent) && expected_[parent].request.sampling.return_logprobs;
    }
    if (draw(0, 2) == 0) {
      overrides.max_new_tokens = draw(1, 40);
    }
    const Result<std::vector<std::string>> ids = engine_->fork(parent, draw(1, 4), overrides);
    if (!ids) {
      return;
    }
    for (const std::string& id : *ids) {
      Expected child = expected_.at(parent);
      child.parent = parent;
      child.request.sampling = overrides.sampling.value_or(child.request.sampling);
      child.request.max_new_tokens = overrides.max_new_tokens ? overrides.max_new_tokens : child.request.max_new_tokens;
      expected_[id] = child;
    }
  }

  void cancel() {
    const std::string id = pick_live();
    CHECK(code_of(engine_->cancel(id)) == (id == "nobody" ? ErrorCode::unknown_request : ErrorCode::none));
  }

  /// The request's tokens if it was forked after `inherited`, up to its own end.
  std::vector<TokenId> continued(const Request& request, std::vector<TokenId> inherited) const {
    Request rest = request;
    rest.prompt_ids.insert(rest.prompt_ids.end(), inherited.begin(), inherited.end());
    if (rest.max_new_tokens) {
      *rest.max_new_tokens -= static_cast<std::int32_t>(inherited.size());
    }
    const std::vector<TokenId> own = expected_tokens(rest, options_.model, longest());
    inherited.insert(inherited.end(), own.begin(), own.end());
    return inherited;
  }

  std::int32_t longest() const {
    std::int32_t length = 0;
    const auto blocks = [&](std::int32_t of_length) {
      std::int32_t sum = 0;
      for (const LayerGroup& group : options_.groups) {
        sum += blocks_for_length(group, options_.config.block_size, of_length);
      }
      return sum;
    };
    while (length < kContext && blocks(length + 1) <= options_.config.num_blocks) {
      ++length;
    }
    return std::min(length + 1, kContext);
  }

  void verify() {
    for (const auto& entry : engine_->results()) {
      const std::string& id = entry.first;
      const Collected& collected = entry.second;
      const Expected& expected = expected_.at(id);
      std::vector<std::vector<TokenId>> possible;
      if (expected.parent.empty()) {
        possible.push_back(continued(expected.request, {}));
      } else {
        // The fork happened at some token that the parent had.
        const std::vector<TokenId>& parent = engine_->result(expected.parent).tokens;
        const auto limit =
            std::min(static_cast<std::int32_t>(parent.size()), expected.request.max_new_tokens.value_or(kContext));
        for (std::int32_t i = 0; i <= limit; ++i) {
          possible.push_back(continued(expected.request, {parent.begin(), parent.begin() + i}));
        }
      }
      const bool ended = collected.reason == FinishReason::stop || collected.reason == FinishReason::length;
      const bool matches = std::ranges::any_of(possible, [&](const std::vector<TokenId>& tokens) {
        return ended ? tokens == collected.tokens
                     : collected.tokens.size() <= tokens.size() &&
                           std::equal(collected.tokens.begin(), collected.tokens.end(), tokens.begin());
      });
      INFO("request " << id << ", reason " << to_string(collected.reason) << ", error " << collected.error.message
                      << ", " << collected.tokens.size() << " tokens, parent \"" << expected.parent << "\"");
      CHECK(matches);
      CHECK((options_.executor.fault != nullptr || collected.reason != FinishReason::failed));
      if (expected.request.sampling.return_logprobs) {
        REQUIRE(collected.logprobs.size() == collected.tokens.size());
        for (std::size_t i = 0; i < collected.tokens.size(); ++i) {
          const auto position = static_cast<std::int32_t>(expected.request.prompt_ids.size() + i);
          CHECK(collected.logprobs[i] == simulated_logprob(collected.tokens[i], position));
        }
      }
    }
  }

  std::mt19937_64 random_;
  SyncEngineOptions options_;
  std::optional<SyncEngine> engine_;
  std::map<std::string, Expected> expected_;
};

void run_lives(std::int32_t depth, bool with_faults, int num_operations) {
  constexpr int kOperationsOfALife = 250;
  const std::uint64_t first_seed = test_seed();
  const bool replays = std::getenv("TROUPE_SEED") != nullptr;
  for (int life = 0; life * kOperationsOfALife < (replays ? 1 : num_operations); ++life) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(life);
    INFO("TROUPE_SEED=" << seed);
    Stress stress(seed, depth, with_faults);
    stress.operate(kOperationsOfALife);
  }
}

TEST_CASE("random operations leave every request exact at depth 1") { run_lives(1, false, 60'000); }

TEST_CASE("random operations leave every request exact at depth 2") { run_lives(2, false, 60'000); }

TEST_CASE("random operations with failing steps leave every request exact at depth 1") { run_lives(1, true, 40'000); }

TEST_CASE("random operations with failing steps leave every request exact at depth 2") { run_lives(2, true, 40'000); }

}  // namespace
}  // namespace troupe::test

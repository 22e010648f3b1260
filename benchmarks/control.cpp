/// What a step costs outside of the model: the whole engine, actors and all, with an executor that computes nothing.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "actors/engine.hpp"
#include "actors/simulated_executor.hpp"
#include "benchmarks/figures.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int32_t kBlockSize = 32;
constexpr std::int32_t kPromptLength = 32;
constexpr std::int32_t kVocabulary = 50'000;
constexpr std::int32_t kRepetitions = 7;

struct Setting {
  std::int32_t num_requests = 0;
  /// Steps of a repetition.
  std::int32_t num_steps = 0;
  /// Whether every token is sent to the client as it comes.
  bool streaming = false;
};

std::int32_t steps_in_all(const Setting& setting) {
  // One repetition to warm up, and what the prompts and the reading of counters take.
  return (kRepetitions + 3) * setting.num_steps + 200;
}

ModelDescription make_model() {
  ModelDescription model;
  model.name = "simulated";
  model.vocab_size = kVocabulary;
  model.max_position_embeddings = 1 << 21;
  model.layer_types = {AttentionType::full};
  model.kv_bytes_per_token_and_layer = 1;
  return model;
}

EngineConfig make_config(const Setting& setting) {
  EngineConfig config;
  config.block_size = kBlockSize;
  // Those submitted first are decoding while the others are being submitted: room for that as well.
  constexpr std::int32_t kSlack = 4;
  config.num_blocks = setting.num_requests * ((kPromptLength + steps_in_all(setting)) / kBlockSize + 2) * kSlack;
  config.max_batch_requests = setting.num_requests;
  config.max_batch_tokens = std::max(setting.num_requests, 512);
  config.safety_margin = 0.0;
  return config;
}

Result<std::unique_ptr<Engine>> start(const Setting& setting) {
  auto engine = Engine::create(make_config(setting), make_model(), []() -> Result<std::unique_ptr<StepExecutor>> {
    return std::make_unique<SimulatedExecutor>(SimulatedExecutorOptions{.vocab_size = kVocabulary, .verify = false});
  });
  if (!engine) {
    return engine;
  }
  for (std::int32_t i = 0; i < setting.num_requests; ++i) {
    Request request;
    for (std::int32_t token = 0; token < kPromptLength; ++token) {
      request.prompt_ids.push_back((i * 31 + token * 7) % kVocabulary);
    }
    // Nobody ends before the measuring does.
    request.max_new_tokens =
        std::min(make_model().max_position_embeddings, make_config(setting).num_blocks * kBlockSize) - kPromptLength;
    request.ignore_eos = true;
    request.streaming = setting.streaming;
    if (auto accepted = (*engine)->submit(std::move(request), [](const RequestOutput&) {}); !accepted) {
      return tl::unexpected(accepted.error());
    }
  }
  return engine;
}

struct Sample {
  Clock::time_point time;
  EngineStatistics statistics;
};

/// Waits until so many steps have settled.
Sample sample_at(const Engine& engine, std::uint64_t steps) {
  while (true) {
    const EngineStatistics statistics = engine.statistics();
    if (statistics.steps >= steps) {
      return {Clock::now(), statistics};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Measures steps of requests that all decode; prints microseconds.
Result<void> measure(const Setting& setting) {
  const Result<std::unique_ptr<Engine>> engine = start(setting);
  if (!engine) {
    return tl::unexpected(engine.error());
  }
  while ((*engine)->statistics().running_requests < setting.num_requests) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Sample before = sample_at(**engine, (*engine)->statistics().steps + static_cast<std::uint64_t>(setting.num_steps));
  std::vector<double> step;
  std::vector<double> executor;
  std::vector<double> gap;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const Sample after = sample_at(**engine, before.statistics.steps + static_cast<std::uint64_t>(setting.num_steps));
    const auto steps = static_cast<double>(after.statistics.steps - before.statistics.steps);
    step.push_back(std::chrono::duration<double, std::micro>(after.time - before.time).count() / steps);
    executor.push_back(static_cast<double>(after.statistics.step_time_total_ns - before.statistics.step_time_total_ns) /
                       1e3 / steps);
    gap.push_back(static_cast<double>(after.statistics.idle_gap_total_ns - before.statistics.idle_gap_total_ns) / 1e3 /
                  steps);
    before = after;
  }
  if (before.statistics.preemptions > 0 || before.statistics.finished_requests > 0) {
    return fail(ErrorCode::internal, "requests were preempted or have ended: these are not steps of decoding only");
  }
  std::printf("%8d %9s %10.1f %10.1f %10.1f %12.3f %10.1f %10.1f\n", setting.num_requests,
              setting.streaming ? "yes" : "no", quantile(step, 0.0), quantile(step, 0.5), quantile(step, 1.0),
              quantile(step, 0.5) / setting.num_requests, quantile(executor, 0.5), quantile(gap, 0.5));
  std::fflush(stdout);
  return {};
}

int main_program() {
  std::printf(
      "A step with the simulated executor, in microseconds of wall time, over %d repetitions.\n"
      "executor: its own time. gap: how long it waits for the next step (both medians).\n",
      kRepetitions);
  std::printf("%8s %9s %10s %10s %10s %12s %10s %10s\n", "requests", "streaming", "min", "median", "max", "per request",
              "executor", "gap");
  for (const bool streaming : {false, true}) {
    for (const auto& [num_requests, num_steps] :
         std::vector<std::pair<std::int32_t, std::int32_t>>{{1, 4000}, {64, 2000}, {1'000, 200}, {10'000, 30}}) {
      if (const Result<void> measured = measure({num_requests, num_steps, streaming}); !measured) {
        std::fprintf(stderr, "%s\n", measured.error().message.c_str());
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main() { return troupe::bench::main_program(); }

/// What a step costs outside of the model: the whole engine with an executor that computes nothing.

#include <atomic>
#include <chrono>
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
constexpr std::int32_t kMaxNewTokens = 1 << 20;
constexpr int kRepetitions = 7;

ModelDescription make_model() {
  ModelDescription model;
  model.name = "simulated";
  model.vocab_size = 50'000;
  model.max_position_embeddings = 1 << 21;
  model.layer_types = {AttentionType::full};
  model.kv_bytes_per_token_and_layer = 1;
  return model;
}

/// Measures steps of `num_requests` decoding requests; prints microseconds per step.
int measure(std::int32_t num_requests) {
  EngineConfig config;
  config.block_size = kBlockSize;
  // Room for a few thousand tokens of each request, and for one request's longest possible output.
  config.num_blocks = std::max(num_requests * 100, 40'000);
  config.max_batch_requests = num_requests;
  config.max_batch_tokens = std::max(num_requests, 512);
  config.safety_margin = 0.0;
  config.prefix_sharing = true;
  SimulatedExecutorOptions options;
  options.vocab_size = make_model().vocab_size;
  options.verify = false;
  auto engine = Engine::create(config, make_model(), [options] {
    return Result<std::unique_ptr<StepExecutor>>(std::make_unique<SimulatedExecutor>(options));
  });
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  for (std::int32_t i = 0; i < num_requests; ++i) {
    Request request;
    for (std::int32_t token = 0; token < kPromptLength; ++token) {
      request.prompt_ids.push_back((i * 31 + token * 7) % options.vocab_size);
    }
    request.max_new_tokens = std::min(kMaxNewTokens, (config.num_blocks - 2) * kBlockSize - kPromptLength);
    request.ignore_eos = true;
    if (auto accepted = (*engine)->submit(std::move(request), nullptr); !accepted) {
      std::fprintf(stderr, "%s\n", accepted.error().message.c_str());
      return 1;
    }
  }
  while ((*engine)->statistics().running_requests < num_requests) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<double> microseconds;
  for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
    const EngineStatistics before = (*engine)->statistics();
    const auto started = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const EngineStatistics after = (*engine)->statistics();
    const double elapsed = std::chrono::duration<double, std::micro>(Clock::now() - started).count();
    // The first is for warming up.
    if (repetition > 0 && after.steps > before.steps) {
      microseconds.push_back(elapsed / static_cast<double>(after.steps - before.steps));
    }
  }
  std::printf("%10d %12.1f %12.1f %12.1f %14.3f\n", num_requests, quantile(microseconds, 0.0),
              quantile(microseconds, 0.5), quantile(microseconds, 1.0), quantile(microseconds, 0.5) / num_requests);
  std::fflush(stdout);
  return 0;
}

int main_program() {
  std::printf("Control plane with the simulated executor: wall time of a step in microseconds, %d times 300 ms each\n",
              kRepetitions);
  std::printf("%10s %12s %12s %12s %14s\n", "requests", "min", "median", "max", "per request");
  for (const std::int32_t num_requests : {1, 64, 1'000, 10'000}) {
    if (measure(num_requests) != 0) {
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main() { return troupe::bench::main_program(); }

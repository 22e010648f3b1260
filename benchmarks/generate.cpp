/// Workloads of token ids on a real model: throughput, latencies, memory, and how long the model waits between steps.

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "actors/engine.hpp"
#include "benchmarks/figures.hpp"
#include "model/expected_tensors.hpp"
#include "model/load.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model;
  std::string workload = TROUPE_WORKLOADS "/w1.json";
  std::string dtype = "f32";
  std::int32_t threads = 0;
  std::int32_t runs = 3;
  EngineConfig engine;
};

struct Workload {
  std::string name;
  std::vector<std::vector<TokenId>> prompts;
  std::int32_t max_new_tokens = 0;
};

/// Arrival times of a run's tokens.
class Arrivals {
 public:
  OutputCallback callback() {
    return [this](const RequestOutput& output) {
      const Clock::time_point now = Clock::now();
      const std::scoped_lock lock(mutex_);
      std::vector<Clock::time_point>& times = times_[output.id];
      times.insert(times.end(), output.token_ids.size(), now);
      if (output.reason != FinishReason::none) {
        ++num_ended_;
        all_good_ = all_good_ && output.reason == FinishReason::length;
        changed_.notify_all();
      }
    };
  }

  void wait_for(std::size_t num_ended) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_ended_ >= num_ended; });
  }

  [[nodiscard]] const std::map<std::string, std::vector<Clock::time_point>>& times() const { return times_; }
  [[nodiscard]] bool all_good() const { return all_good_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<Clock::time_point>> times_;
  std::size_t num_ended_ = 0;
  bool all_good_ = true;
};

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

Workload read_workload(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  return {json.at("name"), json.at("prompts"), json.at("max_new")};
}

std::int64_t weight_bytes(const ModelFiles& files, ComputeType dtype) {
  std::int64_t elements = 0;
  for (const ExpectedTensor& tensor : expected_tensors(files.config)) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) {
      count *= size;
    }
    elements += count;
  }
  return elements * (dtype == ComputeType::f32 ? 4 : 2);
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

/// One run of the workload, all requests at once. Returns false if one failed.
bool run(Engine& engine, const Workload& workload, int number) {
  Arrivals arrivals;
  const EngineStatistics before = engine.statistics();
  const Clock::time_point started = Clock::now();
  for (std::size_t i = 0; i < workload.prompts.size(); ++i) {
    Request request;
    request.id = std::to_string(number) + "-" + std::to_string(i);
    request.prompt_ids = workload.prompts[i];
    request.max_new_tokens = workload.max_new_tokens;
    request.ignore_eos = true;
    request.streaming = true;
    // Each run computes its prompts: a cached one would flatter it.
    request.prefix_sharing = false;
    if (auto accepted = engine.submit(std::move(request), arrivals.callback()); !accepted) {
      std::fprintf(stderr, "%s\n", accepted.error().message.c_str());
      return false;
    }
  }
  arrivals.wait_for(workload.prompts.size());
  const double seconds = milliseconds(Clock::now() - started) / 1000.0;
  const EngineStatistics after = engine.statistics();

  std::vector<double> first;
  std::vector<double> between;
  std::size_t num_tokens = 0;
  for (const auto& [id, times] : arrivals.times()) {
    num_tokens += times.size();
    first.push_back(milliseconds(times.front() - started));
    for (std::size_t i = 1; i < times.size(); ++i) {
      between.push_back(milliseconds(times[i] - times[i - 1]));
    }
  }
  const auto gaps = static_cast<double>(after.idle_gap_count - before.idle_gap_count);
  const double gap_us = static_cast<double>(after.idle_gap_total_ns - before.idle_gap_total_ns) / 1000.0;
  const double step_us = static_cast<double>(after.step_time_total_ns - before.step_time_total_ns) / 1000.0;
  std::printf("run %d: %.1f output tokens/s, %.2f s\n", number, static_cast<double>(num_tokens) / seconds, seconds);
  std::printf("  time to first token    median %.1f ms, p99 %.1f ms\n", quantile(first, 0.5), quantile(first, 0.99));
  std::printf("  inter-token latency    median %.2f ms, p99 %.2f ms\n", quantile(between, 0.5),
              quantile(between, 0.99));
  std::printf("  idle gap between steps mean %.1f us, longest ever %.1f us, %.2f %% of the steps' time\n",
              gaps > 0 ? gap_us / gaps : 0.0, static_cast<double>(after.idle_gap_max_ns) / 1000.0,
              step_us > 0 ? 100.0 * gap_us / step_us : 0.0);
  return arrivals.all_good();
}

int main_program(int argc, char** argv) {
  Options options;
  options.engine.num_blocks = 512;
  CLI::App app("Runs a workload of token ids on a model.", "troupe-bench");
  app.add_option("--model", options.model, "Model directory or .gguf file")->required();
  app.add_option("--workload", options.workload, "JSON file with name, prompts and max_new")->capture_default_str();
  app.add_option("--dtype", options.dtype, "f32 or bf16")->check(CLI::IsMember({"f32", "bf16"}))->capture_default_str();
  app.add_option("--threads", options.threads, "0 takes all cores")->capture_default_str();
  app.add_option("--runs", options.runs, "After one for warming up")->capture_default_str();
  app.add_option("--num-blocks", options.engine.num_blocks, "Cache blocks")->capture_default_str();
  app.add_option("--block-size", options.engine.block_size, "Tokens in a block")->capture_default_str();
  app.add_option("--max-batch-tokens", options.engine.max_batch_tokens, "Tokens of a step")->capture_default_str();
  app.add_option("--pipeline-depth", options.engine.pipeline_depth, "1 or 2")->capture_default_str();
  app.add_option("--trace", options.engine.trace_file, "Write a Chrome trace");
  CLI11_PARSE(app, argc, argv);

  // LibTorch itself and the program, before there is a model.
  const std::int64_t empty = peak_memory_bytes();
  const Result<ModelFiles> files = open_model(options.model);
  if (!files) {
    std::fprintf(stderr, "%s\n", files.error().message.c_str());
    return 1;
  }
  const ComputeType dtype = options.dtype == "f32" ? ComputeType::f32 : ComputeType::bf16;
  const ModelDescription description = describe(*files, dtype);
  const Workload workload = read_workload(options.workload);
  auto engine = Engine::create(options.engine, description, [&files, dtype, threads = options.threads] {
    return make_torch_executor(*files, {.dtype = dtype, .threads = threads});
  });
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  std::printf("%s: %zu prompts, %d new tokens each, %s\n", workload.name.c_str(), workload.prompts.size(),
              workload.max_new_tokens, options.dtype.c_str());
  for (int number = 0; number <= options.runs; ++number) {
    if (!run(**engine, workload, number)) {
      return 1;
    }
  }
  const std::int64_t weights = weight_bytes(*files, dtype);
  const std::int64_t cache = std::int64_t{options.engine.num_blocks + 2} * options.engine.block_size *
                             description.kv_bytes_per_token_and_layer *
                             static_cast<std::int64_t>(description.layer_types.size());
  const std::int64_t peak = peak_memory_bytes();
  constexpr double kMega = 1e6;
  std::printf("peak memory %.0f MB: %.0f MB without a model, %.0f MB of cache, and %.2f times the weights (%.0f MB)\n",
              static_cast<double>(peak) / kMega, static_cast<double>(empty) / kMega, static_cast<double>(cache) / kMega,
              static_cast<double>(peak - cache - empty) / static_cast<double>(weights),
              static_cast<double>(weights) / kMega);
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::main_program(argc, argv); }

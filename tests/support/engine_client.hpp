#pragma once

/// Collects the outputs of an engine's requests in a test.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/engine.hpp"

namespace troupe::test {

/// What a request has got.
struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  FinishReason reason = FinishReason::none;
  Error error;
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  /// More than one is a fault, and so is anything after it.
  std::int32_t num_last_outputs = 0;
  bool output_after_last = false;
};

/// Thread-safe. Outlives the engine whose callbacks it hands out.
class Collector {
 public:
  OutputCallback callback() {
    return [this](const RequestOutput& output) { add(output); };
  }

  void add(const RequestOutput& output) {
    const std::scoped_lock lock(mutex_);
    Answer& answer = answers_[output.id];
    answer.output_after_last = answer.output_after_last || answer.num_last_outputs > 0;
    answer.tokens.insert(answer.tokens.end(), output.token_ids.begin(), output.token_ids.end());
    answer.logprobs.insert(answer.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
    if (output.reason != FinishReason::none) {
      answer.reason = output.reason;
      answer.error = output.error;
      answer.prompt_tokens = output.prompt_tokens;
      answer.cached_tokens = output.cached_tokens;
      ++answer.num_last_outputs;
      ++num_ended_;
    }
    changed_.notify_all();
  }

  /// Waits until so many requests have ended in all. Throws after `timeout`, which only a fault can use up.
  void wait_for(std::size_t num_ended, std::chrono::seconds timeout = std::chrono::seconds(500)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return num_ended_ >= num_ended; })) {
      throw std::runtime_error("only " + std::to_string(num_ended_) + " of " + std::to_string(num_ended) +
                               " requests have ended");
    }
  }

  /// Waits until the request has so many tokens or has ended.
  void wait_for_tokens(const std::string& id, std::size_t num_tokens) {
    std::unique_lock lock(mutex_);
    const auto has_them = [&] { return answers_[id].tokens.size() >= num_tokens || answers_[id].num_last_outputs > 0; };
    if (!changed_.wait_for(lock, std::chrono::seconds(500), has_them)) {
      throw std::runtime_error("request " + id + " has got no " + std::to_string(num_tokens) + " tokens");
    }
  }

  [[nodiscard]] Answer answer(const std::string& id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = answers_.find(id);
    return found == answers_.end() ? Answer{} : found->second;
  }

  [[nodiscard]] std::map<std::string, Answer> answers() const {
    const std::scoped_lock lock(mutex_);
    return answers_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Answer> answers_;
  std::size_t num_ended_ = 0;
};

}  // namespace troupe::test

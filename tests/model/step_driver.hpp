#pragma once

/// Runs requests on an executor step by step, without a scheduler: just enough to show that an executor is right.

#include <cstdint>
#include <string>
#include <vector>

#include "cache/paged_attention_cache.hpp"
#include "cache/step_executor.hpp"

namespace troupe::test {

struct DrivenRequest {
  std::vector<TokenId> prompt;
  std::int32_t max_new_tokens = 0;
  SamplingParams sampling;

  // Filled by the driver.
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::string error;
};

struct DriverOptions {
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 256;
  /// Query tokens of a step; decoding requests go first.
  std::int32_t max_batch_tokens = 512;
  bool poison_unwritten = true;
  /// Plan each step before the one before it is known, as a pipeline of depth 2 does.
  bool ahead = false;
};

/// Runs all requests together to their ends. Throws std::runtime_error on whatever an executor must not do.
void drive(StepExecutor& executor, const ModelDescription& model, const DriverOptions& options,
           std::vector<DrivenRequest>& requests);

}  // namespace troupe::test

#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/step_executor.hpp"
#include "model/decoder.hpp"
#include "model/sampler.hpp"

namespace troupe {

/// Runs steps on a decoder, on the CPU. Whatever LibTorch throws becomes the step's error.
class TorchExecutor final : public StepExecutor {
 public:
  TorchExecutor(std::unique_ptr<Decoder> decoder, ModelDescription model, std::int32_t num_threads);

  [[nodiscard]] Result<void> allocate_cache(const CacheShape& shape) override;
  [[nodiscard]] StepResult execute(const StepPlan& plan, std::span<const GroupInputs> groups) override;

 private:
  /// What a past step sampled, for rows that continue one.
  struct PastStep {
    StepId step = 0;
    std::vector<TokenId> token_ids;
  };

  [[nodiscard]] Result<void> run(const StepPlan& plan, std::span<const GroupInputs> groups, StepResult& result);
  /// Replaces the -1 of rows that continue an earlier step. A row whose source sampled nothing gets an error.
  void resolve_inputs(const StepPlan& plan, std::vector<TokenId>& token_ids, StepResult& result) const;
  [[nodiscard]] Result<void> sample(const StepPlan& plan, const Logits& logits,
                                    std::span<const std::int32_t> sampled_rows, StepResult& result);

  std::unique_ptr<Decoder> decoder_;
  ModelDescription model_;
  std::int32_t num_threads_;
  CacheShape shape_;
  std::deque<PastStep> past_steps_;
  /// One for each thread.
  std::vector<Sampler> samplers_;
  std::vector<std::vector<float>> scratch_;
};

/// Checks a step's inputs against the cache's shape and the vocabulary: lengths, offsets, ids, slots. An error
/// (`internal`) names the row and what was expected; it means a bug in the control plane.
[[nodiscard]] Result<void> check_step(const StepPlan& plan, std::span<const GroupInputs> groups,
                                      const CacheShape& shape, std::int32_t vocab_size);

}  // namespace troupe

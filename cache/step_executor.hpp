#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/step.hpp"

namespace troupe {

/// Shape of the cache that an executor is asked to serve.
struct CacheShape {
  std::int32_t num_blocks = 0;
  /// Slots (tokens) in a block.
  std::int32_t block_size = 0;
  std::vector<LayerGroup> groups;
  /// Fill slots that no step has written yet with NaN, so that reading one shows.
  bool poison_unwritten = false;
};

/// Runs steps. The one interface between the control plane and a model: implemented over LibTorch
/// (model/torch_executor.hpp) and by a simulation that keeps token ids as its cache (actors/simulated_executor.hpp).
/// Used by one thread, the model runner's; that thread also constructs and destroys it.
class StepExecutor {
 public:
  StepExecutor() = default;
  StepExecutor(const StepExecutor&) = delete;
  StepExecutor& operator=(const StepExecutor&) = delete;
  StepExecutor(StepExecutor&&) = delete;
  StepExecutor& operator=(StepExecutor&&) = delete;
  virtual ~StepExecutor() = default;

  /// Allocates the cache. Called once, before the first step.
  [[nodiscard]] virtual Result<void> allocate_cache(const CacheShape& shape) = 0;

  /// Runs one step: block copies of every group, then the forward pass, then sampling. Steps arrive in ascending order
  /// of their ids. `groups` has one entry for each layer group, in order. Never throws: what fails is in the result.
  [[nodiscard]] virtual StepResult execute(const StepPlan& plan, std::span<const GroupInputs> groups) = 0;
};

/// What the control plane must know of a model to serve it; an executor's maker provides it.
struct ModelDescription {
  std::string name;
  std::int32_t vocab_size = 0;
  /// Longest sequence, prompt and output together.
  std::int32_t max_position_embeddings = 0;
  /// One entry for each layer.
  std::vector<AttentionType> layer_types;
  /// Window of the sliding layers; 0 if there is none.
  std::int32_t sliding_window = 0;
  /// Tokens that end a sequence; may be empty.
  std::vector<TokenId> eos_token_ids;
  /// Bytes of keys and values of one token in one layer.
  std::int64_t kv_bytes_per_token_and_layer = 0;
};

}  // namespace troupe

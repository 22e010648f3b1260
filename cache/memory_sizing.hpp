#pragma once

#include <cstdint>

#include "cache/error.hpp"

namespace troupe {

/// What a model's cache and steps cost.
struct CacheCosts {
  /// Slots (tokens) in a block.
  std::int32_t block_size = 0;
  std::int32_t num_groups = 0;
  std::int32_t layers_per_group = 0;
  /// Bytes of keys and values of one token in one layer.
  std::int64_t kv_bytes_per_token_and_layer = 0;
  /// Bytes of one query token's activations at their peak: (hidden size + vocabulary size) * item size in transformers.
  std::int64_t activation_bytes_per_token = 0;
  /// Bytes of the attention masks for one query token and one cached token: item size * number of mask types; 0 if
  /// attention needs no mask.
  std::int64_t mask_bytes_per_pair = 0;
};

/// What is wanted. A number that is 0 is solved for, up to its cap.
struct CacheSizeRequest {
  std::int32_t num_blocks = 0;
  /// Query tokens of a step.
  std::int32_t max_batch_tokens = 0;
  /// Slots are numbered in 31 bits; the cap is lowered to what that allows.
  std::int32_t num_blocks_cap = 1 << 30;
  std::int32_t max_batch_tokens_cap = 8192;
};

struct CacheSize {
  std::int32_t num_blocks = 0;
  std::int32_t max_batch_tokens = 0;
  /// `cache_footprint` of the two.
  std::int64_t bytes = 0;
};

/// Memory that the cache and its steps may take.
struct MemoryBudget {
  /// 0 takes `fraction` of what is available.
  std::int64_t bytes = 0;
  /// In (0, 1].
  double fraction = 0.6;
};

/// Bytes of `num_blocks` blocks (and two more that absorb padding), of their read indices, and of a step's activations,
/// masks and index tensors. The one formula of this file, after `PagedAttentionMemoryHandler` of transformers 5.0.0rc2.
/// Exact if every cost is below 2^31 bytes, and the product of blocks and block size too.
[[nodiscard]] std::int64_t cache_footprint(const CacheCosts& costs, std::int32_t num_blocks,
                                           std::int32_t max_batch_tokens);

/// Turns a budget into bytes. Errors (`invalid_request`): a fraction outside (0, 1], more bytes than are available.
[[nodiscard]] Result<std::int64_t> resolve_memory_budget(const MemoryBudget& budget, std::int64_t available_bytes);

/// Finds the largest numbers whose footprint fits in `budget_bytes`. If neither is given, a step's tokens are a
/// hundredth of the slots, as in the original. What is given is checked, never changed. Errors (`invalid_request`):
/// costs or numbers out of range, or they do not fit; the message has both sides in bytes.
[[nodiscard]] Result<CacheSize> solve_cache_size(const CacheCosts& costs, const CacheSizeRequest& request,
                                                 std::int64_t budget_bytes);

}  // namespace troupe

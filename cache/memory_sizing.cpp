#include "cache/memory_sizing.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace troupe {
namespace {

constexpr std::int64_t kInt32Bytes = 4;
/// Tensors of one int32 per query token that a step has whatever the number of groups: token ids, positions and so on.
constexpr std::int64_t kStepTensors = 7;
/// Blocks beyond the allocated ones, for padding.
constexpr std::int64_t kPaddingBlocks = 2;
/// A step's tokens relative to the cache's slots if neither is given.
constexpr std::int64_t kSlotsPerBatchToken = 100;
constexpr std::int64_t kMaxSlots = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMaxBatchTokens = 1 << 24;
constexpr std::int64_t kMaxBytesPerToken = std::int64_t{1} << 31;

/// The largest value in [low, high] that `fits`, which holds up to some value and not beyond; low if none does.
template <class Fits>
std::int32_t largest_fitting(std::int32_t low, std::int32_t high, Fits fits) {
  while (low < high) {
    const std::int32_t middle = high - (high - low) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

Result<void> check_range(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    return fail(ErrorCode::invalid_request, std::string("cache size: ") + name + " is " + std::to_string(value) +
                                                ", expected " + std::to_string(low) + " to " + std::to_string(high));
  }
  return {};
}

Result<void> check_inputs(const CacheCosts& costs, const CacheSizeRequest& request) {
  const auto max_blocks = [&] { return kMaxSlots / costs.block_size - kPaddingBlocks; };
  return check_range("block_size", costs.block_size, 1, kMaxSlots / (kPaddingBlocks + 1))
      .and_then([&] { return check_range("num_groups", costs.num_groups, 1, 4096); })
      .and_then([&] { return check_range("layers_per_group", costs.layers_per_group, 1, 4096); })
      .and_then([&] {
        return check_range("kv_bytes_per_token_and_layer", costs.kv_bytes_per_token_and_layer, 0,
                           (kMaxBytesPerToken - kInt32Bytes * costs.num_groups) / costs.layers_per_group);
      })
      .and_then([&] {
        return check_range("activation_bytes_per_token", costs.activation_bytes_per_token, 0, kMaxBytesPerToken);
      })
      .and_then([&] { return check_range("mask_bytes_per_pair", costs.mask_bytes_per_pair, 0, 64); })
      .and_then([&] { return check_range("num_blocks", request.num_blocks, 0, max_blocks()); })
      .and_then([&] { return check_range("max_batch_tokens", request.max_batch_tokens, 0, kMaxBatchTokens); })
      .and_then([&] { return check_range("num_blocks_cap", request.num_blocks_cap, 1, kMaxSlots); })
      .and_then([&] { return check_range("max_batch_tokens_cap", request.max_batch_tokens_cap, 1, kMaxBatchTokens); });
}

}  // namespace

std::int64_t cache_footprint(const CacheCosts& costs, std::int32_t num_blocks, std::int32_t max_batch_tokens) {
  const std::int64_t slots = (num_blocks + kPaddingBlocks) * costs.block_size;
  const std::int64_t bytes_per_slot =
      costs.layers_per_group * costs.kv_bytes_per_token_and_layer + costs.num_groups * kInt32Bytes;
  const std::int64_t bytes_per_batch_token =
      costs.activation_bytes_per_token + kInt32Bytes * (kStepTensors + 2 * std::int64_t{costs.num_groups});
  return slots * (bytes_per_slot + costs.mask_bytes_per_pair * max_batch_tokens) +
         bytes_per_batch_token * max_batch_tokens;
}

Result<std::int64_t> resolve_memory_budget(const MemoryBudget& budget, std::int64_t available_bytes) {
  if (budget.bytes != 0) {
    return check_range("memory in bytes", budget.bytes, 1, available_bytes).map([&] { return budget.bytes; });
  }
  if (!(budget.fraction > 0.0 && budget.fraction <= 1.0)) {
    return fail(ErrorCode::invalid_request, "cache size: fraction of the memory is " + std::to_string(budget.fraction) +
                                                ", expected more than 0, at most 1");
  }
  return static_cast<std::int64_t>(static_cast<double>(available_bytes) * budget.fraction);
}

Result<CacheSize> solve_cache_size(const CacheCosts& costs, const CacheSizeRequest& request,
                                   std::int64_t budget_bytes) {
  if (Result<void> checked = check_inputs(costs, request); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const auto batch_tokens_for = [&](std::int32_t num_blocks) -> std::int32_t {
    if (request.max_batch_tokens > 0) {
      return request.max_batch_tokens;
    }
    const std::int64_t share = std::int64_t{num_blocks} * costs.block_size / kSlotsPerBatchToken;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(share, 1, request.max_batch_tokens_cap));
  };
  const auto fits = [&](std::int32_t num_blocks, std::int32_t batch_tokens) {
    return cache_footprint(costs, num_blocks, batch_tokens) <= budget_bytes;
  };

  CacheSize size{.num_blocks = request.num_blocks, .max_batch_tokens = request.max_batch_tokens};
  if (request.num_blocks == 0) {
    const std::int64_t cap =
        std::min<std::int64_t>(request.num_blocks_cap, kMaxSlots / costs.block_size - kPaddingBlocks);
    size.num_blocks = largest_fitting(1, static_cast<std::int32_t>(cap),
                                      [&](std::int32_t n) { return fits(n, batch_tokens_for(n)); });
    size.max_batch_tokens = batch_tokens_for(size.num_blocks);
  } else if (request.max_batch_tokens == 0) {
    size.max_batch_tokens =
        largest_fitting(1, request.max_batch_tokens_cap, [&](std::int32_t m) { return fits(size.num_blocks, m); });
  }
  size.bytes = cache_footprint(costs, size.num_blocks, size.max_batch_tokens);
  if (size.bytes > budget_bytes) {
    return fail(ErrorCode::invalid_request,
                "cache size: " + std::to_string(size.num_blocks) + " blocks of " + std::to_string(costs.block_size) +
                    " slots and steps of " + std::to_string(size.max_batch_tokens) + " tokens need " +
                    std::to_string(size.bytes) + " bytes, " + std::to_string(budget_bytes) + " may be used");
  }
  return size;
}

}  // namespace troupe

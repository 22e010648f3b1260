#include "cache/paged_attention_cache.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace troupe {

PagedAttentionCache::PagedAttentionCache(BlockManagerOptions options, std::vector<LayerGroup> groups,
                                         bool block_sharing)
    : manager_(std::make_unique<BlockManager>(std::move(options))) {
  for (LayerGroup& group : groups) {
    allocators_.push_back(make_cache_allocator(num_groups(), std::move(group), *manager_, block_sharing));
  }
}

bool PagedAttentionCache::prefix_sharing() const noexcept {
  return allocators_.size() == 1 && allocators_.front()->shareable();
}

std::int32_t PagedAttentionCache::blocks_for(std::int32_t length) const {
  std::int32_t total = 0;
  for (const auto& allocator : allocators_) {
    total += allocator->blocks_for_length(length);
  }
  return total;
}

std::optional<std::int32_t> PagedAttentionCache::allocate_blocks(RequestId request, std::int32_t num_blocks) {
  std::int64_t needed = 0;
  for (const auto& allocator : allocators_) {
    needed += allocator->blocks_to_allocate(request, num_blocks);
  }
  if (needed > manager_->num_blocks() || !manager_->reserve(static_cast<std::int32_t>(needed))) {
    return std::nullopt;
  }
  std::int32_t most = 0;
  for (const auto& allocator : allocators_) {
    most = std::max(most, allocator->allocate_blocks(request, num_blocks, Claim::reserved).value_or(0));
  }
  return most;
}

bool PagedAttentionCache::free_blocks(RequestId request) {
  bool found = false;
  for (const auto& allocator : allocators_) {
    found = allocator->free_blocks(request) || found;
  }
  return found;
}

Result<std::int32_t> PagedAttentionCache::search_prefix_match(RequestId request, std::span<const TokenId> tokens) {
  if (!prefix_sharing() || tokens.empty()) {
    return 0;
  }
  CacheAllocator& allocator = *allocators_.front();
  if (!allocator.block_table(request).empty()) {
    return fail(ErrorCode::duplicate_id,
                "request " + std::to_string(request) + " has a block table; a prefix can only start one");
  }
  // The last token is left out: a step must compute something to sample from.
  const std::span<const TokenId> searched = tokens.first(tokens.size() - 1);
  const std::vector<BlockHash> hashes = manager_->compute_hashes(searched, allocator.group());
  std::vector<BlockId> found = manager_->acquire_prefix(hashes, searched, allocator.group());
  const auto num_tokens = static_cast<std::int32_t>(found.size()) * manager_->block_size();
  return allocator.adopt_blocks(request, std::move(found)).map([num_tokens] { return num_tokens; });
}

Result<std::vector<std::vector<BlockCopy>>> PagedAttentionCache::fork_request(RequestId source,
                                                                              std::span<const RequestId> destinations) {
  std::int64_t needed = 0;
  for (const auto& allocator : allocators_) {
    const Result<void> checked = allocator->check_fork(source, destinations);
    if (!checked) {
      return tl::unexpected<Error>(checked.error());
    }
    needed +=
        static_cast<std::int64_t>(allocator->blocks_to_fork(source)) * static_cast<std::int64_t>(destinations.size());
  }
  if (needed > manager_->num_blocks() || !manager_->reserve(static_cast<std::int32_t>(needed))) {
    return fail(ErrorCode::out_of_blocks, "a fork of request " + std::to_string(source) + " to " +
                                              std::to_string(destinations.size()) + " children needs " +
                                              std::to_string(needed) + " blocks, " +
                                              std::to_string(manager_->num_available_blocks()) + " are available");
  }
  std::vector<std::vector<BlockCopy>> copies;
  for (const auto& allocator : allocators_) {
    Result<std::vector<BlockCopy>> forked = allocator->fork_blocks(source, destinations, Claim::reserved);
    if (!forked) {
      return tl::unexpected<Error>(std::move(forked.error()));
    }
    copies.push_back(std::move(*forked));
  }
  return copies;
}

Result<void> PagedAttentionCache::mark_shareable_blocks_as_complete(RequestId request, std::int32_t num_complete_blocks,
                                                                    std::span<const TokenId> tokens,
                                                                    std::int32_t first_position) {
  for (const auto& allocator : allocators_) {
    Result<void> marked =
        allocator->mark_shareable_blocks_as_complete(request, num_complete_blocks, tokens, first_position);
    if (!marked) {
      return marked;
    }
  }
  return {};
}

Result<std::vector<std::vector<std::int32_t>>> PagedAttentionCache::get_read_indices(RequestId request,
                                                                                     std::int32_t past_length,
                                                                                     std::int32_t query_length) const {
  std::vector<std::vector<std::int32_t>> indices;
  for (const auto& allocator : allocators_) {
    Result<std::vector<std::int32_t>> own = allocator->get_read_indices(request, past_length, query_length);
    if (!own) {
      return tl::unexpected<Error>(std::move(own.error()));
    }
    indices.push_back(std::move(*own));
  }
  return indices;
}

Result<std::vector<std::vector<std::int32_t>>> PagedAttentionCache::get_write_indices(RequestId request,
                                                                                      std::int32_t past_length,
                                                                                      std::int32_t query_length) const {
  std::vector<std::vector<std::int32_t>> indices;
  for (const auto& allocator : allocators_) {
    Result<std::vector<std::int32_t>> own = allocator->get_write_indices(request, past_length, query_length);
    if (!own) {
      return tl::unexpected<Error>(std::move(own.error()));
    }
    indices.push_back(std::move(*own));
  }
  return indices;
}

std::vector<std::int32_t> PagedAttentionCache::get_seqlens_k(std::int32_t past_length,
                                                             std::int32_t query_length) const {
  std::vector<std::int32_t> lengths;
  for (const auto& allocator : allocators_) {
    lengths.push_back(allocator->get_seqlens_k(past_length, query_length));
  }
  return lengths;
}

Result<void> PagedAttentionCache::check_invariants() const {
  std::vector<std::span<const BlockId>> tables;
  for (const auto& allocator : allocators_) {
    for (const auto& [request, table] : allocator->block_tables()) {
      if (table.empty()) {
        return fail(ErrorCode::internal, "request " + std::to_string(request) + " has an empty block table");
      }
      tables.emplace_back(table);
    }
  }
  return manager_->check_invariants(tables);
}

}  // namespace troupe

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/block_manager.hpp"
#include "cache/cache_allocator.hpp"
#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// A block manager and one allocator for each layer group, used together by one thread: the bookkeeping half of
/// `PagedAttentionCache` of transformers. The engine's actors use the parts concurrently instead.
class PagedAttentionCache {
 public:
  /// @param block_sharing Whether complete blocks of full-attention groups may be shared between requests.
  PagedAttentionCache(BlockManagerOptions options, std::vector<LayerGroup> groups, bool block_sharing);

  [[nodiscard]] BlockManager& manager() noexcept { return *manager_; }
  [[nodiscard]] const BlockManager& manager() const noexcept { return *manager_; }
  [[nodiscard]] std::int32_t num_groups() const noexcept { return static_cast<std::int32_t>(allocators_.size()); }
  /// @param group In [0, num_groups()).
  [[nodiscard]] CacheAllocator& allocator(GroupId group) { return *allocators_[static_cast<std::size_t>(group)]; }
  [[nodiscard]] const CacheAllocator& allocator(GroupId group) const {
    return *allocators_[static_cast<std::size_t>(group)];
  }
  /// Whether prefixes are searched for: blocks are shared, and the only group is one of full attention.
  [[nodiscard]] bool prefix_sharing() const noexcept;

  /// Blocks that a request of `length` tokens holds, over all groups.
  [[nodiscard]] std::int32_t blocks_for(std::int32_t length) const;

  /// Appends up to `num_blocks` blocks to the request's table in every group. Returns the largest number appended to
  /// one; nullopt and no change if they do not all fit.
  [[nodiscard]] std::optional<std::int32_t> allocate_blocks(RequestId request, std::int32_t num_blocks);

  /// Releases the request's blocks in every group. False if it had none.
  bool free_blocks(RequestId request);

  /// Starts the request's table with the cached blocks that its prompt begins with. Returns their number of tokens,
  /// which leaves at least one token to compute; 0 without `prefix_sharing()`. Error `duplicate_id` if it has a table.
  [[nodiscard]] Result<std::int32_t> search_prefix_match(RequestId request, std::span<const TokenId> tokens);

  /// Forks the source in every group or, on an error, in none. Returns the copies of each group.
  [[nodiscard]] Result<std::vector<std::vector<BlockCopy>>> fork_request(RequestId source,
                                                                         std::span<const RequestId> destinations);

  /// See `BlockManager::mark_shareable_blocks_as_complete`; for every group that shares.
  [[nodiscard]] Result<void> mark_shareable_blocks_as_complete(RequestId request, std::int32_t num_complete_blocks,
                                                               std::span<const TokenId> tokens,
                                                               std::int32_t first_position = 0);

  /// See `CacheAllocator`; one entry for each group.
  [[nodiscard]] Result<std::vector<std::vector<std::int32_t>>> get_read_indices(RequestId request,
                                                                                std::int32_t past_length,
                                                                                std::int32_t query_length) const;
  [[nodiscard]] Result<std::vector<std::vector<std::int32_t>>> get_write_indices(RequestId request,
                                                                                 std::int32_t past_length,
                                                                                 std::int32_t query_length) const;
  [[nodiscard]] std::vector<std::int32_t> get_seqlens_k(std::int32_t past_length, std::int32_t query_length) const;

  /// Checks the block states against the tables of all groups.
  [[nodiscard]] Result<void> check_invariants() const;

 private:
  /// Behind a pointer, so that the cache can be moved while the allocators refer to it.
  std::unique_ptr<BlockManager> manager_;
  std::vector<std::unique_ptr<CacheAllocator>> allocators_;
};

}  // namespace troupe

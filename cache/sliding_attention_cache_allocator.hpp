#pragma once

#include "cache/cache_allocator.hpp"

namespace troupe {

/// A ring of W = `sliding_window` slots: position p is at offset p % W of the table, whatever the blocks' total size.
/// Blocks of a ring are overwritten, so they are never shared.
class SlidingAttentionCacheAllocator final : public CacheAllocator {
 public:
  SlidingAttentionCacheAllocator(GroupId group, LayerGroup layers, BlockManager& manager);

  /// The cached tokens that the first query token sees, at most W - 1, and every query token.
  [[nodiscard]] std::int32_t get_seqlens_k(std::int32_t past_length, std::int32_t query_length) const override;

 protected:
  void append_read_indices(const Row& row, std::vector<std::int32_t>& indices) const override;
  void append_write_indices(const Row& row, std::vector<std::int32_t>& indices) const override;

 private:
  [[nodiscard]] std::int32_t window() const noexcept { return layers().sliding_window; }
};

}  // namespace troupe

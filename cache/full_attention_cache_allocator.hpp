#pragma once

#include "cache/cache_allocator.hpp"

namespace troupe {

/// Every position has a slot of its own for as long as the request lives: position p is at offset p of the table.
class FullAttentionCacheAllocator final : public CacheAllocator {
 public:
  using CacheAllocator::CacheAllocator;

  /// Every cached token and every query token.
  [[nodiscard]] std::int32_t get_seqlens_k(std::int32_t past_length, std::int32_t query_length) const override;

 protected:
  void append_read_indices(const Row& row, std::vector<std::int32_t>& indices) const override;
  void append_write_indices(const Row& row, std::vector<std::int32_t>& indices) const override;
};

}  // namespace troupe

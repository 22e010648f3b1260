#include "cache/sliding_attention_cache_allocator.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// A window has at least the query's own position.
LayerGroup with_window(LayerGroup layers) {
  layers.sliding_window = std::max(layers.sliding_window, 1);
  return layers;
}

}  // namespace

SlidingAttentionCacheAllocator::SlidingAttentionCacheAllocator(GroupId group, LayerGroup layers, BlockManager& manager)
    : CacheAllocator(group, with_window(std::move(layers)), manager, /*block_sharing=*/false) {}

std::int32_t SlidingAttentionCacheAllocator::get_seqlens_k(std::int32_t past_length, std::int32_t query_length) const {
  return std::min(past_length, window() - 1) + query_length;
}

void SlidingAttentionCacheAllocator::append_read_indices(const Row& row, std::vector<std::int32_t>& indices) const {
  const std::int32_t num_cached = std::min(row.past_length, window() - 1);
  for (std::int32_t position = row.past_length - num_cached; position < row.past_length; ++position) {
    indices.push_back(slot(row.table, position % window()));
  }
  indices.insert(indices.end(), static_cast<std::size_t>(row.query_length), -1);
}

void SlidingAttentionCacheAllocator::append_write_indices(const Row& row, std::vector<std::int32_t>& indices) const {
  const std::int32_t num_kept = std::min(row.query_length, window());
  const std::int32_t num_dropped = row.query_length - num_kept;
  indices.insert(indices.end(), static_cast<std::size_t>(num_dropped), -1);
  for (std::int32_t i = num_dropped; i < row.query_length; ++i) {
    indices.push_back(slot(row.table, (row.past_length + i) % window()));
  }
}

}  // namespace troupe

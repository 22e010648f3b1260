#include "cache/full_attention_cache_allocator.hpp"

namespace troupe {

std::int32_t FullAttentionCacheAllocator::get_seqlens_k(std::int32_t past_length, std::int32_t query_length) const {
  return past_length + query_length;
}

void FullAttentionCacheAllocator::append_read_indices(const Row& row, std::vector<std::int32_t>& indices) const {
  for (std::int32_t position = 0; position < row.past_length + row.query_length; ++position) {
    indices.push_back(slot(row.table, position));
  }
}

void FullAttentionCacheAllocator::append_write_indices(const Row& row, std::vector<std::int32_t>& indices) const {
  for (std::int32_t i = 0; i < row.query_length; ++i) {
    indices.push_back(slot(row.table, row.past_length + i));
  }
}

}  // namespace troupe

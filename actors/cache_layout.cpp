#include "actors/cache_layout.hpp"

#include <algorithm>
#include <utility>

#include "cache/cache_allocator.hpp"

namespace troupe {

CacheLayout::CacheLayout(std::vector<LayerGroup> groups, std::int32_t block_size, bool block_sharing)
    : groups_(std::move(groups)), block_size_(block_size), block_sharing_(block_sharing) {}

bool CacheLayout::shares_blocks(std::size_t group) const {
  return block_sharing_ && groups_[group].type == AttentionType::full;
}

bool CacheLayout::can_share_prefixes() const { return groups_.size() == 1 && shares_blocks(0); }

std::int32_t CacheLayout::blocks_to_grow(std::size_t group, std::int32_t from, std::int32_t to) const {
  return blocks_for_length(groups_[group], block_size_, to) - blocks_for_length(groups_[group], block_size_, from);
}

std::int64_t CacheLayout::blocks_to_grow(std::int32_t from, std::int32_t to) const {
  std::int64_t blocks = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    blocks += blocks_to_grow(group, from, to);
  }
  return blocks;
}

std::int64_t CacheLayout::blocks_to_fork(std::int32_t length, bool shares) const {
  std::int64_t blocks = 0;
  for (const LayerGroup& group : groups_) {
    blocks += blocks_for_fork(group, block_size_, block_sharing_ && shares, length);
  }
  return blocks;
}

std::int32_t CacheLayout::capacity(std::int32_t num_blocks, std::int32_t limit) const {
  std::int32_t fits = 0;
  std::int32_t too_long = std::max(limit, 0);
  if (blocks_to_grow(0, too_long) <= num_blocks) {
    return too_long;
  }
  while (too_long - fits > 1) {
    const std::int32_t middle = fits + (too_long - fits) / 2;
    (blocks_to_grow(0, middle) <= num_blocks ? fits : too_long) = middle;
  }
  return fits;
}

}  // namespace troupe

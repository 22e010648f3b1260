#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/types.hpp"

namespace troupe {

/// What follows from lengths alone: how many blocks sequences take in every layer group.
class CacheLayout {
 public:
  /// @param block_sharing Whether complete blocks of full-attention groups are shared.
  CacheLayout(std::vector<LayerGroup> groups, std::int32_t block_size, bool block_sharing);

  [[nodiscard]] std::size_t num_groups() const noexcept { return groups_.size(); }
  [[nodiscard]] std::int32_t block_size() const noexcept { return block_size_; }
  /// Whether complete blocks of the group are hashed and shared.
  [[nodiscard]] bool shares_blocks(std::size_t group) const;
  /// Whether cached prefixes can be used at all: only if one full-attention group holds everything. A sliding group has
  /// already overwritten what a prefix of it would need, and several groups would have to hit together.
  [[nodiscard]] bool can_share_prefixes() const;

  /// Blocks that a group adds when a sequence grows from `from` to `to` cached tokens.
  [[nodiscard]] std::int32_t blocks_to_grow(std::size_t group, std::int32_t from, std::int32_t to) const;
  /// The same, in all groups.
  [[nodiscard]] std::int64_t blocks_to_grow(std::int32_t from, std::int32_t to) const;
  /// Blocks, in all groups, that one child of a fork at `length` cached tokens takes.
  /// @param shares Whether the parent's complete blocks are hashed.
  [[nodiscard]] std::int64_t blocks_to_fork(std::int32_t length, bool shares) const;
  /// Largest number of tokens, up to `limit`, that one sequence can have in a cache of `num_blocks` blocks.
  [[nodiscard]] std::int32_t capacity(std::int32_t num_blocks, std::int32_t limit) const;

 private:
  std::vector<LayerGroup> groups_;
  std::int32_t block_size_;
  bool block_sharing_;
};

}  // namespace troupe

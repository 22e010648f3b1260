#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cache/types.hpp"

namespace troupe {

/// 128-bit hash of a chain of blocks.
struct BlockHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

enum class BlockState : std::uint8_t { uninitialized, in_use, initialized };

/// The manager's record of one block.
struct Block {
  BlockId id = 0;
  BlockState state = BlockState::uninitialized;
  bool shareable = false;
  GroupId group = 0;
  std::int32_t ref_count = 0;
  /// Predecessor in the sequence; nullopt for a first block. Always a complete block if this one is complete.
  std::optional<BlockId> parent;
  /// Set exactly if the block is complete and findable.
  std::optional<BlockHash> hash;
  /// The tokens of a complete block.
  std::vector<TokenId> tokens;

  [[nodiscard]] bool is_complete() const noexcept { return hash.has_value(); }
};

/// Copy of a `BlockManager`'s state.
struct BlockManagerSnapshot {
  std::vector<Block> blocks;
  /// Head is handed out next.
  std::vector<BlockId> uninitialized;
  /// In the order in which they became initialized.
  std::vector<BlockId> initialized;
  std::vector<std::pair<BlockHash, BlockId>> hash_to_block;
};

}  // namespace troupe

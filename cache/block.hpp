#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cache/block_hash.hpp"
#include "cache/types.hpp"

namespace troupe {

enum class BlockState : std::uint8_t { uninitialized, in_use, initialized };

/// The manager's record of one block.
struct Block {
  BlockId id = 0;
  BlockState state = BlockState::uninitialized;
  bool shareable = false;
  /// All slots are computed, but the hash of the block, or of one before it, belongs to other content: forks share it,
  /// prefix searches cannot find it.
  bool collided = false;
  GroupId group = 0;
  std::int32_t ref_count = 0;
  /// Predecessor in the sequence; nullopt for a first block.
  std::optional<BlockId> parent;
  /// The parent's `generation` when it was this block's predecessor. If it has changed since, the parent has lost its
  /// content: this block is an orphan, which no search finds.
  std::uint32_t parent_generation = 0;
  /// How often the block has lost its content.
  std::uint32_t generation = 0;
  /// Set exactly if the block is complete and findable.
  std::optional<BlockHash> hash;
  /// The tokens of a complete block.
  std::vector<TokenId> tokens;

  [[nodiscard]] bool is_complete() const noexcept { return hash.has_value(); }
  /// Whether nobody will write to the block any more, so that forks may share it.
  [[nodiscard]] bool is_sealed() const noexcept { return is_complete() || collided; }
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

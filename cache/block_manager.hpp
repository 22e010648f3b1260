#pragma once

/// Owner of the cache's blocks. See docs/cache.md for the states and the reservation protocol.

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/block.hpp"
#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Which initialized block is evicted first.
enum class EvictionOrder : std::uint8_t {
  /// The least recently used one, leaves before their parents.
  least_recently_used,
  /// The most recently cached one, as transformers 5.0.0rc2 does; kept to replay its recorded traces.
  last_in_first_out,
};

/// Whether an allocation draws on blocks that were reserved before.
enum class Claim : std::uint8_t { unreserved, reserved };

/// Computes a block's hash from its parent's hash (nullopt for a first block), its tokens and its group.
using BlockHashFunction =
    std::function<BlockHash(std::optional<BlockHash> parent, std::span<const TokenId> tokens, GroupId group)>;

struct BlockManagerOptions {
  std::int32_t num_blocks = 0;
  /// Slots (tokens) in a block.
  std::int32_t block_size = 0;
  EvictionOrder eviction = EvictionOrder::least_recently_used;
  /// XXH3-128 if empty. Hits are verified token by token, so a weak function costs sharing, never correctness.
  BlockHashFunction hash;
};

/// Blocks in each state. `in_use + initialized + uninitialized` is the total; a shared block counts once.
struct BlockCounts {
  std::int32_t in_use = 0;
  std::int32_t initialized = 0;
  std::int32_t uninitialized = 0;
  /// Part of the free blocks that is promised to steps that were planned but not yet allocated.
  std::int32_t reserved = 0;
  /// Blocks in use and initialized, by group.
  std::vector<std::int32_t> in_use_by_group;
  std::vector<std::int32_t> initialized_by_group;
};

/// What a fork allocates: one table for each child and the copies that fill them.
struct BlockFork {
  std::vector<std::vector<BlockId>> children;
  std::vector<BlockCopy> copies;
};

/// Keeps the state of every block: un-initialized, in use, or initialized (complete, referenced by nobody, reusable until
/// evicted). Counterpart of `BlockManager` of transformers 5.0.0rc2.
///
/// A monitor: every method may be called from any thread, holds one mutex for microseconds and never calls out.
class BlockManager {
 public:
  explicit BlockManager(BlockManagerOptions options);

  [[nodiscard]] std::int32_t num_blocks() const noexcept;
  [[nodiscard]] std::int32_t block_size() const noexcept;

  /// Un-initialized plus initialized blocks, reserved ones included.
  [[nodiscard]] std::int32_t num_free_blocks() const;
  /// Free blocks that no reservation holds.
  [[nodiscard]] std::int32_t num_available_blocks() const;
  /// Unlike the original's, never evicts.
  [[nodiscard]] bool has_enough_free_blocks(std::int32_t num_blocks) const;

  /// Promises `num_blocks` free blocks to later `Claim::reserved` allocations; all or nothing.
  [[nodiscard]] bool reserve(std::int32_t num_blocks);
  /// Takes back a promise that will not be used.
  void cancel_reservation(std::int32_t num_blocks);

  /// Takes `num_blocks` blocks, evicting only as many initialized ones as are missing; nullopt and no change if there are
  /// not enough. A shareable block gets its predecessor as parent, the first one `last_block_id`.
  [[nodiscard]] std::optional<std::vector<BlockId>> get_free_blocks(std::int32_t num_blocks,
                                                                    std::optional<BlockId> last_block_id,
                                                                    bool shareable, GroupId group,
                                                                    Claim claim = Claim::unreserved);

  /// Drops one reference of each block. Complete blocks become initialized, others un-initialized. A block that is not
  /// in use, or repeated beyond its count, is an error and nothing changes.
  [[nodiscard]] Result<void> free_blocks(std::span<const BlockId> blocks);

  /// Gives each of `num_forks` children the parent's complete blocks by reference and new blocks for the rest; all
  /// children or none. Error `out_of_blocks` if they do not fit.
  [[nodiscard]] Result<BlockFork> fork_blocks(std::span<const BlockId> parent_blocks, std::int32_t num_forks,
                                              bool shareable, GroupId group, Claim claim = Claim::unreserved);

  /// Hashes the next `num_complete_blocks` incomplete blocks of `blocks`. A block whose content is already cached under
  /// another id is replaced in `blocks` by that one and becomes un-initialized.
  /// @param tokens The sequence's tokens from position `first_position` on (a multiple of the block size); must cover the
  ///   blocks to complete.
  [[nodiscard]] Result<void> mark_shareable_blocks_as_complete(std::int32_t num_complete_blocks,
                                                               std::vector<BlockId>& blocks,
                                                               std::span<const TokenId> tokens, GroupId group,
                                                               std::int32_t first_position = 0);

  /// Hashes of the whole blocks of a prompt. Takes no lock: call it once per request, off the critical path.
  [[nodiscard]] std::vector<BlockHash> compute_hashes(std::span<const TokenId> tokens, GroupId group) const;

  /// Finds the longest cached chain that starts `tokens`, verifies its tokens and takes a reference on each of its blocks,
  /// in one critical section. Stops before a revival that would eat a reservation.
  /// @param hashes From `compute_hashes`; at most this many blocks are taken.
  [[nodiscard]] std::vector<BlockId> acquire_prefix(std::span<const BlockHash> hashes, std::span<const TokenId> tokens,
                                                    GroupId group);

  [[nodiscard]] BlockCounts counts() const;

  /// Checks every invariant of the block states.
  /// @param tables If given, every table that holds blocks: reference counts must equal the number of tables.
  [[nodiscard]] Result<void> check_invariants() const;
  [[nodiscard]] Result<void> check_invariants(std::span<const std::span<const BlockId>> tables) const;

  /// A copy of the whole state, for tests and diagnostics.
  [[nodiscard]] BlockManagerSnapshot snapshot() const;
};

}  // namespace troupe

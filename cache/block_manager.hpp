#pragma once

/// Owner of the cache's blocks. See docs/cache.md for the states and the reservation protocol.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/block.hpp"
#include "cache/block_hash.hpp"
#include "cache/block_list.hpp"
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

struct BlockManagerOptions {
  /// `num_blocks * block_size` must fit in 31 bits, because slots are numbered by std::int32_t.
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

/// Keeps the state of every block: un-initialized, in use, or initialized (complete, referenced by nobody, reusable
/// until evicted). Counterpart of `BlockManager` of transformers 5.0.0rc2.
///
/// A monitor: every method may be called from any thread, holds one mutex for microseconds and never calls out (hashes
/// are computed before it is taken). Holders of a block should hold its predecessors too and release them together, in
/// the table's order: a block whose predecessor was evicted before it cannot be found any more.
class BlockManager {
 public:
  /// A negative number of blocks counts as 0, a block size below 1 as 1.
  explicit BlockManager(BlockManagerOptions options);
  BlockManager(const BlockManager&) = delete;
  BlockManager& operator=(const BlockManager&) = delete;
  BlockManager(BlockManager&&) = delete;
  BlockManager& operator=(BlockManager&&) = delete;
  ~BlockManager() = default;

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
  /// Takes back a promise that will not be used. Taking back more than is reserved is a bug that `check_invariants`
  /// reports from then on.
  void cancel_reservation(std::int32_t num_blocks);

  /// Takes `num_blocks` blocks, evicting only as many initialized ones as are missing; nullopt and no change if there
  /// are not enough (free and unreserved ones, or reserved ones, as `claim` says). A shareable block gets its
  /// predecessor as parent, the first one `last_block_id`, which must be in use.
  [[nodiscard]] std::optional<std::vector<BlockId>> get_free_blocks(std::int32_t num_blocks,
                                                                    std::optional<BlockId> last_block_id,
                                                                    bool shareable, GroupId group,
                                                                    Claim claim = Claim::unreserved);

  /// Drops one reference of each block. Complete blocks become initialized, others un-initialized. A block that is not
  /// in use, or repeated beyond its count, is an error and nothing changes.
  [[nodiscard]] Result<void> free_blocks(std::span<const BlockId> blocks);

  /// Number of blocks that a fork must copy for each child: those after the last one that can be shared.
  [[nodiscard]] std::int32_t count_blocks_to_copy(std::span<const BlockId> parent_blocks) const;

  /// Gives each of `num_forks` children the parent's complete blocks by reference and new blocks for the rest; all
  /// children or none. Error `out_of_blocks` if they do not fit.
  [[nodiscard]] Result<BlockFork> fork_blocks(std::span<const BlockId> parent_blocks, std::int32_t num_forks,
                                              bool shareable, GroupId group, Claim claim = Claim::unreserved);

  /// Hashes the next `num_complete_blocks` incomplete blocks of `blocks`. A block whose content is already cached under
  /// another id is replaced in `blocks` by that one and becomes un-initialized. A block whose hash belongs to other
  /// content is left without one, as are those after it. On an error nothing changes.
  /// @param tokens The sequence's tokens from position `first_position` on (a multiple of the block size); must cover
  /// the
  ///   blocks to complete.
  [[nodiscard]] Result<void> mark_shareable_blocks_as_complete(std::int32_t num_complete_blocks,
                                                               std::vector<BlockId>& blocks,
                                                               std::span<const TokenId> tokens, GroupId group,
                                                               std::int32_t first_position = 0);

  /// Hashes of the whole blocks of a prompt. Takes no lock: call it once per request, off the critical path.
  [[nodiscard]] std::vector<BlockHash> compute_hashes(std::span<const TokenId> tokens, GroupId group) const;

  /// Finds the longest cached chain that starts `tokens`, verifies its tokens and takes a reference on each of its
  /// blocks, in one critical section. Stops before a revival that would eat a reservation.
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

 private:
  /// The incomplete blocks of a table that are to be completed, [first, last), and the hash that theirs chain from.
  struct CompletionRange {
    std::size_t first = 0;
    std::size_t last = 0;
    std::optional<BlockHash> parent_hash;
  };

  // All of these expect the mutex to be held, or read only what never changes.
  [[nodiscard]] Block& at(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Block& at(BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool is_block(BlockId id) const;
  [[nodiscard]] bool is_in_use(BlockId id) const;
  [[nodiscard]] std::int32_t free_count() const { return uninitialized_.size() + initialized_.size(); }
  [[nodiscard]] std::int32_t claimable(Claim claim) const;
  [[nodiscard]] std::size_t sealed_prefix(std::span<const BlockId> table) const;
  /// Whether the block holds `tokens` after `parent`, whatever its hash.
  [[nodiscard]] bool matches(BlockId id, std::optional<BlockId> parent, std::span<const TokenId> tokens,
                             GroupId group) const;
  [[nodiscard]] std::span<const TokenId> block_tokens(std::span<const TokenId> tokens, std::size_t block) const;
  [[nodiscard]] std::vector<BlockHash> chain_hashes(std::optional<BlockHash> parent, std::span<const TokenId> tokens,
                                                    GroupId group) const;
  [[nodiscard]] Result<CompletionRange> find_completion_range(std::int32_t num_complete_blocks,
                                                              std::span<const BlockId> table,
                                                              std::span<const TokenId> tokens, GroupId group,
                                                              std::int32_t first_position) const;
  [[nodiscard]] bool is_orphan(const Block& block) const;
  [[nodiscard]] Error not_in_use(BlockId id) const;

  /// Takes blocks that are known to be claimable.
  std::vector<BlockId> take(std::int32_t num_blocks, std::optional<BlockId> parent, bool shareable, GroupId group,
                            Claim claim);
  void evict_one();
  /// Makes a block with its parent set findable, or replaces it by the one that has its content already. False, and no
  /// change, if the hash belongs to other content.
  bool register_or_replace(BlockId& id, const BlockHash& hash, std::span<const TokenId> tokens);
  void set_parent(BlockId id, std::optional<BlockId> parent);
  /// Makes a complete block unfindable; it is freed for good if nobody uses it.
  void forget_content(BlockId id);
  void add_reference(BlockId id);
  /// Moves a block without references to where it belongs.
  void retire(BlockId id);
  void make_uninitialized(BlockId id);

  [[nodiscard]] Result<void> check_lists() const;
  [[nodiscard]] Result<void> check_block(const Block& block) const;
  [[nodiscard]] Result<void> check_counts() const;
  [[nodiscard]] Result<void> check_references(std::span<const std::span<const BlockId>> tables) const;

  const std::int32_t block_size_;
  const EvictionOrder eviction_;
  const BlockHashFunction hash_;

  mutable std::mutex mutex_;
  std::vector<Block> blocks_;
  /// First in, first out.
  BlockList uninitialized_;
  /// Ordered by the time of the last release. Children precede their parents under `least_recently_used`.
  BlockList initialized_;
  std::unordered_map<BlockHash, BlockId, BlockHashHasher> hash_to_block_;
  std::vector<std::int32_t> in_use_by_group_;
  std::vector<std::int32_t> initialized_by_group_;
  std::int32_t reserved_ = 0;
  /// How much more was taken back from reservations than had been promised.
  std::int64_t excess_cancelled_ = 0;
};

}  // namespace troupe

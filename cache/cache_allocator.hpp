#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/block_manager.hpp"
#include "cache/error.hpp"
#include "cache/step.hpp"
#include "cache/types.hpp"

namespace troupe {

/// Block tables of one layer group. Used by one thread (its cache allocator actor); only the `BlockManager` beneath it
/// is shared. Counterpart of `CacheAllocator` of transformers.
class CacheAllocator {
 public:
  /// @param block_sharing Whether complete blocks of a full-attention group may be shared between requests.
  CacheAllocator(GroupId group, LayerGroup layers, BlockManager& manager, bool block_sharing);
  CacheAllocator(const CacheAllocator&) = delete;
  CacheAllocator& operator=(const CacheAllocator&) = delete;
  CacheAllocator(CacheAllocator&&) = delete;
  CacheAllocator& operator=(CacheAllocator&&) = delete;
  virtual ~CacheAllocator() = default;

  [[nodiscard]] GroupId group() const noexcept { return group_; }
  [[nodiscard]] const LayerGroup& layers() const noexcept { return layers_; }
  /// Whether blocks of this group have hashes and are shared.
  [[nodiscard]] bool shareable() const noexcept { return shareable_; }

  /// Appends up to `num_blocks` blocks to the request's table, creating it on first use; fewer where the group needs no
  /// more (a full ring). Returns how many; nullopt and no change if they are not free. Never leaves an empty table.
  [[nodiscard]] std::optional<std::int32_t> allocate_blocks(RequestId request, std::int32_t num_blocks,
                                                            Claim claim = Claim::unreserved);

  /// How many blocks `allocate_blocks` would append now.
  [[nodiscard]] std::int32_t blocks_to_allocate(RequestId request, std::int32_t num_blocks) const;

  /// Starts a table with blocks that a prefix search has already referenced; no blocks, no table. On an error (a table
  /// exists, or the group does not share) the references stay the caller's.
  [[nodiscard]] Result<void> adopt_blocks(RequestId request, std::vector<BlockId> blocks);

  /// Releases the request's blocks and drops its table. False if there was none.
  bool free_blocks(RequestId request);

  /// Gives each child a table: complete blocks by reference, the rest as new blocks to be filled by the returned
  /// copies. Unknown parent, existing child or too few blocks: an error, and nothing changes.
  [[nodiscard]] Result<std::vector<BlockCopy>> fork_blocks(RequestId parent, std::span<const RequestId> children,
                                                           Claim claim = Claim::unreserved);

  /// Whether `fork_blocks` may start: the parent has a table, each child's id is new and named once.
  [[nodiscard]] Result<void> check_fork(RequestId parent, std::span<const RequestId> children) const;

  /// Number of blocks that `fork_blocks` takes for each child.
  [[nodiscard]] std::int32_t blocks_to_fork(RequestId parent) const;

  /// See `BlockManager::mark_shareable_blocks_as_complete`; does nothing for a group that does not share.
  [[nodiscard]] Result<void> mark_shareable_blocks_as_complete(RequestId request, std::int32_t num_complete_blocks,
                                                               std::span<const TokenId> tokens,
                                                               std::int32_t first_position = 0);

  /// The request's blocks, in order; empty if it has no table.
  [[nodiscard]] std::span<const BlockId> block_table(RequestId request) const;
  [[nodiscard]] const std::unordered_map<RequestId, std::vector<BlockId>>& block_tables() const noexcept;

  /// Appends the row's part of a step: its table and the slot of each of its query tokens. On an error nothing changes.
  [[nodiscard]] Result<void> append_step_inputs(const StepRow& row, GroupInputs& inputs) const;

  /// Slots that the row's attention reads, in order of position. Full attention: every position, the query's included.
  /// Sliding: the cached positions still in the window, then -1 once for each query token (their keys are not read from
  /// the cache but used directly, since writing them may overwrite a slot that is still to be read).
  [[nodiscard]] Result<std::vector<std::int32_t>> get_read_indices(RequestId request, std::int32_t past_length,
                                                                   std::int32_t query_length) const;
  /// Slot of each query token; -1 where it does not survive the step.
  [[nodiscard]] Result<std::vector<std::int32_t>> get_write_indices(RequestId request, std::int32_t past_length,
                                                                    std::int32_t query_length) const;
  /// Number of keys that the row's attention sees.
  [[nodiscard]] virtual std::int32_t get_seqlens_k(std::int32_t past_length, std::int32_t query_length) const = 0;
  /// Blocks that a request of `length` tokens holds in this group.
  [[nodiscard]] std::int32_t blocks_for_length(std::int32_t length) const;

 protected:
  /// A request's row of a step. The lengths are not negative and their sum fits in 31 bits.
  struct Row {
    std::span<const BlockId> table;
    std::int32_t past_length = 0;
    std::int32_t query_length = 0;
  };

  [[nodiscard]] std::int32_t block_size() const noexcept { return manager_.block_size(); }
  /// The slot at `offset` in the row of slots that the blocks of `table` make. The table must reach that far.
  [[nodiscard]] std::int32_t slot(std::span<const BlockId> table, std::int32_t offset) const;

  /// Append to `indices`; the table is known to hold every slot that the lengths imply.
  virtual void append_read_indices(const Row& row, std::vector<std::int32_t>& indices) const = 0;
  virtual void append_write_indices(const Row& row, std::vector<std::int32_t>& indices) const = 0;

 private:
  /// The request's row, if its lengths make sense and its table is long enough for them.
  [[nodiscard]] Result<Row> find_row(RequestId request, std::int32_t past_length, std::int32_t query_length) const;
  [[nodiscard]] Error no_table(RequestId request) const;

  const GroupId group_;
  const LayerGroup layers_;
  const bool shareable_;
  BlockManager& manager_;
  std::unordered_map<RequestId, std::vector<BlockId>> tables_;
};

/// Blocks that a request of `length` tokens holds in a group; what the scheduler computes reservations from.
[[nodiscard]] std::int32_t blocks_for_length(const LayerGroup& group, std::int32_t block_size, std::int32_t length);

/// Blocks that a fork of a request of `length` cached tokens takes for each child in a group: those that are copied.
[[nodiscard]] std::int32_t blocks_for_fork(const LayerGroup& group, std::int32_t block_size, bool block_sharing,
                                           std::int32_t length);

/// Makes the allocator that the group's attention type needs.
[[nodiscard]] std::unique_ptr<CacheAllocator> make_cache_allocator(GroupId group, LayerGroup layers,
                                                                   BlockManager& manager, bool block_sharing);

}  // namespace troupe

#include "cache/block_manager.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {
namespace {

/// More groups than a model has layers; bounds the counters that a wrong group number could make grow.
constexpr GroupId kMaxGroups = 4096;

bool is_group(GroupId group) { return group >= 0 && group < kMaxGroups; }

}  // namespace

BlockManager::BlockManager(BlockManagerOptions options)
    : block_size_(std::max(options.block_size, 1)),
      eviction_(options.eviction),
      hash_(options.hash ? std::move(options.hash) : BlockHashFunction(compute_block_hash)),
      blocks_(static_cast<std::size_t>(std::max(options.num_blocks, 0))),
      uninitialized_(std::max(options.num_blocks, 0)),
      initialized_(std::max(options.num_blocks, 0)) {
  for (BlockId id = 0; id < options.num_blocks; ++id) {
    at(id).id = id;
    uninitialized_.push_back(id);
  }
}

std::int32_t BlockManager::num_blocks() const noexcept { return static_cast<std::int32_t>(blocks_.size()); }

std::int32_t BlockManager::block_size() const noexcept { return block_size_; }

std::int32_t BlockManager::num_free_blocks() const {
  const std::scoped_lock lock(mutex_);
  return free_count();
}

std::int32_t BlockManager::num_available_blocks() const {
  const std::scoped_lock lock(mutex_);
  return claimable(Claim::unreserved);
}

bool BlockManager::has_enough_free_blocks(std::int32_t num_blocks) const {
  const std::scoped_lock lock(mutex_);
  return num_blocks <= claimable(Claim::unreserved);
}

bool BlockManager::reserve(std::int32_t num_blocks) {
  const std::scoped_lock lock(mutex_);
  if (num_blocks < 0 || num_blocks > claimable(Claim::unreserved)) {
    return false;
  }
  reserved_ += num_blocks;
  return true;
}

void BlockManager::cancel_reservation(std::int32_t num_blocks) {
  const std::scoped_lock lock(mutex_);
  const std::int32_t cancelled = std::clamp(num_blocks, 0, reserved_);
  reserved_ -= cancelled;
  excess_cancelled_ += std::abs(std::int64_t{num_blocks} - cancelled);
}

std::optional<std::vector<BlockId>> BlockManager::get_free_blocks(std::int32_t num_blocks,
                                                                  std::optional<BlockId> last_block_id, bool shareable,
                                                                  GroupId group, Claim claim) {
  const std::scoped_lock lock(mutex_);
  const bool chained = shareable && last_block_id.has_value();
  if (num_blocks < 0 || num_blocks > claimable(claim) || !is_group(group) || (chained && !is_in_use(*last_block_id))) {
    return std::nullopt;
  }
  return take(num_blocks, last_block_id, shareable, group, claim);
}

Result<void> BlockManager::free_blocks(std::span<const BlockId> blocks) {
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!is_in_use(blocks[i]) || at(blocks[i]).ref_count == 0) {
      for (const BlockId id : blocks.first(i)) {
        ++at(id).ref_count;
      }
      return tl::unexpected<Error>(not_in_use(blocks[i]));
    }
    --at(blocks[i]).ref_count;
  }

  // A block may be listed twice, hence the look at its state. In reverse, children become initialized before their
  // parents, so that eviction from the front takes leaves first.
  const auto retire_if_unused = [this](BlockId id) {
    if (at(id).ref_count == 0 && at(id).state == BlockState::in_use) {
      retire(id);
    }
  };
  if (eviction_ == EvictionOrder::least_recently_used) {
    std::for_each(blocks.rbegin(), blocks.rend(), retire_if_unused);
  } else {
    std::for_each(blocks.begin(), blocks.end(), retire_if_unused);
  }
  return {};
}

std::int32_t BlockManager::count_blocks_to_copy(std::span<const BlockId> parent_blocks) const {
  const std::scoped_lock lock(mutex_);
  return static_cast<std::int32_t>(parent_blocks.size() - sealed_prefix(parent_blocks));
}

Result<BlockFork> BlockManager::fork_blocks(std::span<const BlockId> parent_blocks, std::int32_t num_forks,
                                            bool shareable, GroupId group, Claim claim) {
  const std::scoped_lock lock(mutex_);
  if (num_forks < 0 || !is_group(group)) {
    return fail(ErrorCode::invalid_request, "a fork in group " + std::to_string(group) + " to " +
                                                std::to_string(num_forks) + " children: neither may be negative");
  }
  const auto unused =
      std::find_if_not(parent_blocks.begin(), parent_blocks.end(), [this](BlockId id) { return is_in_use(id); });
  if (unused != parent_blocks.end()) {
    return tl::unexpected<Error>(not_in_use(*unused));
  }
  const std::size_t num_shared = shareable ? sealed_prefix(parent_blocks) : 0;
  const std::span<const BlockId> shared = parent_blocks.first(num_shared);
  const std::span<const BlockId> copied = parent_blocks.subspan(num_shared);
  const auto needed = static_cast<std::int64_t>(copied.size()) * num_forks;
  if (needed > claimable(claim)) {
    return fail(ErrorCode::out_of_blocks, "a fork to " + std::to_string(num_forks) + " children needs " +
                                              std::to_string(needed) + " blocks, " + std::to_string(claimable(claim)) +
                                              " can be taken");
  }

  BlockFork fork;
  fork.children.assign(static_cast<std::size_t>(num_forks), std::vector<BlockId>(shared.begin(), shared.end()));
  const std::optional<BlockId> last_shared = shared.empty() ? std::nullopt : std::optional(shared.back());
  for (std::vector<BlockId>& child : fork.children) {
    std::for_each(shared.begin(), shared.end(), [this](BlockId id) { add_reference(id); });
    const std::vector<BlockId> own =
        take(static_cast<std::int32_t>(copied.size()), last_shared, shareable, group, claim);
    for (std::size_t i = 0; i < own.size(); ++i) {
      fork.copies.push_back(BlockCopy{.source = copied[i], .destination = own[i]});
    }
    child.insert(child.end(), own.begin(), own.end());
  }
  return fork;
}

BlockCounts BlockManager::counts() const {
  const std::scoped_lock lock(mutex_);
  return BlockCounts{.in_use = num_blocks() - free_count(),
                     .initialized = initialized_.size(),
                     .uninitialized = uninitialized_.size(),
                     .reserved = reserved_,
                     .in_use_by_group = in_use_by_group_,
                     .initialized_by_group = initialized_by_group_};
}

BlockManagerSnapshot BlockManager::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return BlockManagerSnapshot{.blocks = blocks_,
                              .uninitialized = uninitialized_.to_vector(),
                              .initialized = initialized_.to_vector(),
                              .hash_to_block = {hash_to_block_.begin(), hash_to_block_.end()}};
}

bool BlockManager::is_block(BlockId id) const { return id >= 0 && id < num_blocks(); }

bool BlockManager::is_in_use(BlockId id) const { return is_block(id) && at(id).state == BlockState::in_use; }

std::int32_t BlockManager::claimable(Claim claim) const {
  return claim == Claim::reserved ? reserved_ : free_count() - reserved_;
}

std::size_t BlockManager::sealed_prefix(std::span<const BlockId> table) const {
  const auto end =
      std::find_if_not(table.begin(), table.end(), [this](BlockId id) { return is_in_use(id) && at(id).is_sealed(); });
  return static_cast<std::size_t>(end - table.begin());
}

bool BlockManager::is_orphan(const Block& block) const {
  return block.parent && at(*block.parent).generation != block.parent_generation;
}

Error BlockManager::not_in_use(BlockId id) const {
  return Error{ErrorCode::internal, "block " + std::to_string(id) + " of " + std::to_string(num_blocks()) +
                                        " blocks is not in use, or is named more often than it is referenced"};
}

std::vector<BlockId> BlockManager::take(std::int32_t num_blocks, std::optional<BlockId> parent, bool shareable,
                                        GroupId group, Claim claim) {
  const auto group_index = static_cast<std::size_t>(group);
  if (group_index >= in_use_by_group_.size()) {
    in_use_by_group_.resize(group_index + 1);
    initialized_by_group_.resize(group_index + 1);
  }
  while (uninitialized_.size() < num_blocks) {
    evict_one();
  }
  if (claim == Claim::reserved) {
    reserved_ -= num_blocks;
  }
  in_use_by_group_[group_index] += num_blocks;

  std::vector<BlockId> taken;
  taken.reserve(static_cast<std::size_t>(num_blocks));
  for (std::int32_t i = 0; i < num_blocks; ++i) {
    const BlockId id = uninitialized_.front();
    uninitialized_.erase(id);
    Block& block = at(id);
    block.state = BlockState::in_use;
    block.shareable = shareable;
    block.group = group;
    block.ref_count = 1;
    if (shareable) {
      set_parent(id, taken.empty() ? parent : std::optional(taken.back()));
    }
    taken.push_back(id);
  }
  return taken;
}

void BlockManager::evict_one() {
  const BlockId id = eviction_ == EvictionOrder::least_recently_used ? initialized_.front() : initialized_.back();
  forget_content(id);
}

void BlockManager::set_parent(BlockId id, std::optional<BlockId> parent) {
  at(id).parent = parent;
  at(id).parent_generation = parent ? at(*parent).generation : 0;
}

void BlockManager::forget_content(BlockId id) {
  Block& block = at(id);
  hash_to_block_.erase(*block.hash);
  if (block.state == BlockState::initialized) {
    initialized_.erase(id);
    --initialized_by_group_[static_cast<std::size_t>(block.group)];
    make_uninitialized(id);
    return;
  }
  block.hash.reset();
  block.tokens.clear();
  block.collided = true;
  ++block.generation;
}

void BlockManager::add_reference(BlockId id) {
  Block& block = at(id);
  ++block.ref_count;
  if (block.state == BlockState::initialized) {
    initialized_.erase(id);
    block.state = BlockState::in_use;
    --initialized_by_group_[static_cast<std::size_t>(block.group)];
    ++in_use_by_group_[static_cast<std::size_t>(block.group)];
  }
}

void BlockManager::retire(BlockId id) {
  Block& block = at(id);
  --in_use_by_group_[static_cast<std::size_t>(block.group)];
  if (!block.is_complete()) {
    make_uninitialized(id);
    return;
  }
  block.state = BlockState::initialized;
  initialized_.push_back(id);
  ++initialized_by_group_[static_cast<std::size_t>(block.group)];
}

void BlockManager::make_uninitialized(BlockId id) {
  Block& block = at(id);
  block.state = BlockState::uninitialized;
  block.shareable = false;
  block.collided = false;
  block.ref_count = 0;
  block.parent.reset();
  ++block.generation;
  block.hash.reset();
  // Keeps the capacity: the next sequence's tokens need no allocation.
  block.tokens.clear();
  uninitialized_.push_back(id);
}

}  // namespace troupe

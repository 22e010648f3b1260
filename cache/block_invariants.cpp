/// The half of `BlockManager` that checks the other two.

#include <string>

#include "cache/block_manager.hpp"

namespace troupe {
namespace {

tl::unexpected<Error> broken(const std::string& what) {
  return fail(ErrorCode::internal, "block accounting is broken: " + what);
}

std::string describe(const Block& block) { return "block " + std::to_string(block.id) + " "; }

}  // namespace

Result<void> BlockManager::check_invariants() const {
  const std::scoped_lock lock(mutex_);
  if (Result<void> lists = check_lists(); !lists) {
    return lists;
  }
  std::size_t num_complete = 0;
  for (const Block& block : blocks_) {
    num_complete += block.is_complete() ? 1 : 0;
    if (Result<void> checked = check_block(block); !checked) {
      return checked;
    }
  }
  if (num_complete != hash_to_block_.size()) {
    return broken(std::to_string(hash_to_block_.size()) + " hashes are known for " + std::to_string(num_complete) +
                  " complete blocks");
  }
  return check_counts();
}

Result<void> BlockManager::check_invariants(std::span<const std::span<const BlockId>> tables) const {
  if (Result<void> states = check_invariants(); !states) {
    return states;
  }
  const std::scoped_lock lock(mutex_);
  return check_references(tables);
}

Result<void> BlockManager::check_lists() const {
  std::vector<bool> listed(blocks_.size());
  const auto check_list = [&](const BlockList& list, BlockState state) -> Result<void> {
    const std::vector<BlockId> ids = list.to_vector();
    if (ids.size() != static_cast<std::size_t>(list.size())) {
      return broken("a list of " + std::to_string(list.size()) + " blocks links " + std::to_string(ids.size()));
    }
    for (const BlockId id : ids) {
      const auto index = static_cast<std::size_t>(id);
      if (listed[index] || at(id).state != state) {
        return broken(describe(at(id)) + "is in two lists or in the wrong one");
      }
      listed[index] = true;
    }
    return {};
  };
  if (Result<void> checked = check_list(uninitialized_, BlockState::uninitialized); !checked) {
    return checked;
  }
  if (Result<void> checked = check_list(initialized_, BlockState::initialized); !checked) {
    return checked;
  }
  for (const Block& block : blocks_) {
    if (listed[static_cast<std::size_t>(block.id)] == (block.state == BlockState::in_use)) {
      return broken(describe(block) + "is in use and free at once, or neither");
    }
  }
  return {};
}

Result<void> BlockManager::check_block(const Block& block) const {
  if ((block.state == BlockState::in_use) != (block.ref_count > 0) || block.ref_count < 0) {
    return broken(describe(block) + "has " + std::to_string(block.ref_count) + " references, which its state denies");
  }
  if (block.state == BlockState::uninitialized && (block.is_sealed() || block.parent || !block.tokens.empty())) {
    return broken(describe(block) + "is un-initialized but remembers its former content");
  }
  if (block.state == BlockState::initialized && !block.is_complete()) {
    return broken(describe(block) + "is initialized but not complete");
  }
  if (!block.shareable && (block.is_sealed() || block.parent)) {
    return broken(describe(block) + "is not shareable but has a hash or a parent");
  }
  if (block.collided && block.is_complete()) {
    return broken(describe(block) + "is findable although its hash collided");
  }
  if (block.tokens.size() != (block.is_complete() ? static_cast<std::size_t>(block_size_) : 0)) {
    return broken(describe(block) + "keeps " + std::to_string(block.tokens.size()) + " tokens");
  }
  if (!block.is_complete()) {
    return {};
  }
  const auto known = hash_to_block_.find(*block.hash);
  if (known == hash_to_block_.end() || known->second != block.id) {
    return broken(describe(block) + "cannot be found by its hash");
  }
  if (!block.parent || is_orphan(block)) {
    return {};
  }
  const Block& parent = at(*block.parent);
  if (!parent.is_complete() || parent.group != block.group) {
    return broken(describe(block) + "is complete but its parent " + std::to_string(parent.id) +
                  " is not, or is of another group");
  }
  return {};
}

Result<void> BlockManager::check_counts() const {
  std::vector<std::int32_t> in_use(in_use_by_group_.size());
  std::vector<std::int32_t> initialized(initialized_by_group_.size());
  for (const Block& block : blocks_) {
    if (block.state != BlockState::uninitialized) {
      ++(block.state == BlockState::in_use ? in_use : initialized)[static_cast<std::size_t>(block.group)];
    }
  }
  if (in_use != in_use_by_group_ || initialized != initialized_by_group_) {
    return broken("the counts by group differ from a recount");
  }
  if (reserved_ < 0 || reserved_ > free_count()) {
    return broken(std::to_string(reserved_) + " blocks are reserved, " + std::to_string(free_count()) + " are free");
  }
  if (excess_cancelled_ != 0) {
    return broken(std::to_string(excess_cancelled_) + " blocks more were taken back than had been reserved");
  }
  return {};
}

Result<void> BlockManager::check_references(std::span<const std::span<const BlockId>> tables) const {
  std::vector<std::int32_t> references(blocks_.size());
  for (const std::span<const BlockId> table : tables) {
    for (const BlockId id : table) {
      if (!is_block(id)) {
        return broken("a table holds block " + std::to_string(id) + " of " + std::to_string(num_blocks()));
      }
      ++references[static_cast<std::size_t>(id)];
    }
  }
  for (const Block& block : blocks_) {
    const std::int32_t held = references[static_cast<std::size_t>(block.id)];
    if (held != block.ref_count) {
      return broken(describe(block) + "has " + std::to_string(block.ref_count) + " references and is in " +
                    std::to_string(held) + " tables");
    }
  }
  return {};
}

}  // namespace troupe

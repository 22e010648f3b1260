/// The half of `BlockManager` that hashes complete blocks, finds and de-duplicates them.

#include <algorithm>
#include <string>

#include "cache/block_manager.hpp"

namespace troupe {

Result<void> BlockManager::mark_shareable_blocks_as_complete(std::int32_t num_complete_blocks,
                                                             std::vector<BlockId>& blocks,
                                                             std::span<const TokenId> tokens, GroupId group,
                                                             std::int32_t first_position) {
  Result<CompletionRange> range;
  {
    const std::scoped_lock lock(mutex_);
    range = find_completion_range(num_complete_blocks, blocks, tokens, group, first_position);
  }
  if (!range) {
    return tl::unexpected<Error>(range.error());
  }
  if (range->first == range->last) {
    return {};
  }
  // Between the two critical sections nobody else can touch these blocks: they are incomplete, so the caller is their
  // only holder.
  const std::size_t num_skipped = range->first - static_cast<std::size_t>(first_position / block_size_);
  const auto block_size = static_cast<std::size_t>(block_size_);
  const std::span<const TokenId> completed =
      tokens.subspan(num_skipped * block_size, (range->last - range->first) * block_size);
  const std::vector<BlockHash> hashes = chain_hashes(range->parent_hash, completed, group);

  const std::scoped_lock lock(mutex_);
  std::optional<BlockId> parent = range->first == 0 ? std::nullopt : std::optional(blocks[range->first - 1]);
  bool collided = parent.has_value() && at(*parent).collided;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    BlockId& id = blocks[range->first + i];
    const std::span<const TokenId> content = block_tokens(completed, i);
    set_parent(id, parent);
    collided = collided || !register_or_replace(id, hashes[i], content);
    at(id).collided = collided;
    parent = id;
  }
  if (range->last < blocks.size()) {
    set_parent(blocks[range->last], parent);
  }
  return {};
}

bool BlockManager::register_or_replace(BlockId& id, const BlockHash& hash, std::span<const TokenId> tokens) {
  auto known = hash_to_block_.find(hash);
  if (known != hash_to_block_.end() && is_orphan(at(known->second))) {
    forget_content(known->second);
    known = hash_to_block_.end();
  }
  Block& own = at(id);
  if (known == hash_to_block_.end()) {
    hash_to_block_.emplace(hash, id);
    own.hash = hash;
    own.tokens.assign(tokens.begin(), tokens.end());
    return true;
  }
  if (!matches(known->second, own.parent, tokens, own.group)) {
    return false;
  }
  // The own block is released first, so that a revival never takes more free blocks than there were.
  own.ref_count = 0;
  retire(id);
  id = known->second;
  add_reference(id);
  return true;
}

std::vector<BlockHash> BlockManager::compute_hashes(std::span<const TokenId> tokens, GroupId group) const {
  return chain_hashes(std::nullopt, tokens, group);
}

std::vector<BlockId> BlockManager::acquire_prefix(std::span<const BlockHash> hashes, std::span<const TokenId> tokens,
                                                  GroupId group) {
  const std::size_t limit = std::min(hashes.size(), tokens.size() / static_cast<std::size_t>(block_size_));
  const std::scoped_lock lock(mutex_);
  std::vector<BlockId> found;
  std::optional<BlockId> parent;
  for (std::size_t i = 0; i < limit; ++i) {
    const auto known = hash_to_block_.find(hashes[i]);
    if (known == hash_to_block_.end() || !matches(known->second, parent, block_tokens(tokens, i), group)) {
      break;
    }
    const BlockId id = known->second;
    if (at(id).state == BlockState::initialized && claimable(Claim::unreserved) == 0) {
      break;
    }
    add_reference(id);
    found.push_back(id);
    parent = id;
  }
  return found;
}

bool BlockManager::matches(BlockId id, std::optional<BlockId> parent, std::span<const TokenId> tokens,
                           GroupId group) const {
  const Block& block = at(id);
  return block.group == group && block.parent == parent && !is_orphan(block) &&
         std::ranges::equal(block.tokens, tokens);
}

std::span<const TokenId> BlockManager::block_tokens(std::span<const TokenId> tokens, std::size_t block) const {
  const auto block_size = static_cast<std::size_t>(block_size_);
  return tokens.subspan(block * block_size, block_size);
}

std::vector<BlockHash> BlockManager::chain_hashes(std::optional<BlockHash> parent, std::span<const TokenId> tokens,
                                                  GroupId group) const {
  std::vector<BlockHash> hashes(tokens.size() / static_cast<std::size_t>(block_size_));
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    hashes[i] = hash_(parent, block_tokens(tokens, i), group);
    parent = hashes[i];
  }
  return hashes;
}

Result<BlockManager::CompletionRange> BlockManager::find_completion_range(std::int32_t num_complete_blocks,
                                                                          std::span<const BlockId> table,
                                                                          std::span<const TokenId> tokens,
                                                                          GroupId group,
                                                                          std::int32_t first_position) const {
  CompletionRange range{.first = table.size(), .last = 0, .parent_hash = std::nullopt};
  for (; range.first > 0; --range.first) {
    const BlockId id = table[range.first - 1];
    if (!is_in_use(id) || !at(id).shareable || at(id).group != group) {
      return fail(ErrorCode::internal, "block " + std::to_string(id) + " cannot be completed: it is not a shareable " +
                                           "block in use of group " + std::to_string(group));
    }
    if (at(id).is_sealed()) {
      range.parent_hash = at(id).hash;
      break;
    }
    if (at(id).ref_count != 1) {
      return fail(ErrorCode::internal, "block " + std::to_string(id) + " is incomplete, but has " +
                                           std::to_string(at(id).ref_count) + " references");
    }
  }
  const std::size_t num_wanted = num_complete_blocks > 0 ? static_cast<std::size_t>(num_complete_blocks) : 0;
  range.last = std::min(table.size(), range.first + num_wanted);

  const auto block_size = static_cast<std::size_t>(block_size_);
  const bool aligned = first_position >= 0 && first_position % block_size_ == 0;
  const auto start = aligned ? static_cast<std::size_t>(first_position) : 0;
  if (!aligned || (range.first < range.last &&
                   (start > range.first * block_size || tokens.size() < range.last * block_size - start))) {
    return fail(ErrorCode::invalid_request, "to complete blocks " + std::to_string(range.first) + " to " +
                                                std::to_string(range.last) + " of " + std::to_string(block_size_) +
                                                " slots, " + std::to_string(tokens.size()) + " tokens from position " +
                                                std::to_string(first_position) + " on are not what is needed");
  }
  return range;
}

}  // namespace troupe

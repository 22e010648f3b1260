#include "cache/cache_allocator.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "cache/full_attention_cache_allocator.hpp"
#include "cache/sliding_attention_cache_allocator.hpp"

namespace troupe {
namespace {

constexpr std::int32_t kMaxLength = std::numeric_limits<std::int32_t>::max();

/// Positions of a sequence of `length` that a group keeps.
std::int32_t kept_positions(const LayerGroup& group, std::int32_t length) {
  return group.type == AttentionType::sliding ? std::min(length, group.sliding_window) : length;
}

}  // namespace

CacheAllocator::CacheAllocator(GroupId group, LayerGroup layers, BlockManager& manager, bool block_sharing)
    : group_(group),
      layers_(std::move(layers)),
      shareable_(block_sharing && layers_.type == AttentionType::full),
      manager_(manager) {}

std::int32_t CacheAllocator::blocks_to_allocate(RequestId request, std::int32_t num_blocks) const {
  const auto held = static_cast<std::int32_t>(block_table(request).size());
  return std::clamp(num_blocks, 0, std::max(blocks_for_length(kMaxLength) - held, 0));
}

std::optional<std::int32_t> CacheAllocator::allocate_blocks(RequestId request, std::int32_t num_blocks, Claim claim) {
  const std::int32_t num_granted = blocks_to_allocate(request, num_blocks);
  if (num_granted == 0) {
    return 0;
  }
  const std::span<const BlockId> held = block_table(request);
  const std::optional<BlockId> last = held.empty() ? std::nullopt : std::optional(held.back());
  const std::optional<std::vector<BlockId>> granted =
      manager_.get_free_blocks(num_granted, last, shareable_, group_, claim);
  if (!granted) {
    return std::nullopt;
  }
  std::vector<BlockId>& table = tables_[request];
  table.insert(table.end(), granted->begin(), granted->end());
  return num_granted;
}

Result<void> CacheAllocator::adopt_blocks(RequestId request, std::vector<BlockId> blocks) {
  if (blocks.empty()) {
    return {};
  }
  if (!shareable_ || tables_.contains(request)) {
    return fail(ErrorCode::internal, "request " + std::to_string(request) + " cannot adopt blocks in group " +
                                         std::to_string(group_) + ": the group does not share, or it has a table");
  }
  tables_.emplace(request, std::move(blocks));
  return {};
}

bool CacheAllocator::free_blocks(RequestId request) {
  const auto table = tables_.find(request);
  if (table == tables_.end()) {
    return false;
  }
  const bool released = manager_.free_blocks(table->second).has_value();
  tables_.erase(table);
  return released;
}

Result<std::vector<BlockCopy>> CacheAllocator::fork_blocks(RequestId parent, std::span<const RequestId> children,
                                                           Claim claim) {
  if (Result<void> checked = check_fork(parent, children); !checked) {
    return tl::unexpected<Error>(std::move(checked.error()));
  }
  Result<BlockFork> fork =
      manager_.fork_blocks(tables_.at(parent), static_cast<std::int32_t>(children.size()), shareable_, group_, claim);
  if (!fork) {
    return tl::unexpected<Error>(std::move(fork.error()));
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    tables_.emplace(children[i], std::move(fork->children[i]));
  }
  return std::move(fork->copies);
}

Result<void> CacheAllocator::check_fork(RequestId parent, std::span<const RequestId> children) const {
  if (!tables_.contains(parent)) {
    return tl::unexpected<Error>(no_table(parent));
  }
  std::unordered_set<RequestId> names;
  for (const RequestId child : children) {
    if (tables_.contains(child) || !names.insert(child).second) {
      return fail(ErrorCode::duplicate_id, "request " + std::to_string(child) + ", a child of request " +
                                               std::to_string(parent) + ", already has a table in group " +
                                               std::to_string(group_));
    }
  }
  return {};
}

std::int32_t CacheAllocator::blocks_to_fork(RequestId parent) const {
  return manager_.count_blocks_to_copy(block_table(parent));
}

Result<void> CacheAllocator::mark_shareable_blocks_as_complete(RequestId request, std::int32_t num_complete_blocks,
                                                               std::span<const TokenId> tokens,
                                                               std::int32_t first_position) {
  if (!shareable_) {
    return {};
  }
  const auto table = tables_.find(request);
  if (table == tables_.end()) {
    return tl::unexpected<Error>(no_table(request));
  }
  return manager_.mark_shareable_blocks_as_complete(num_complete_blocks, table->second, tokens, group_, first_position);
}

std::span<const BlockId> CacheAllocator::block_table(RequestId request) const {
  const auto table = tables_.find(request);
  return table == tables_.end() ? std::span<const BlockId>() : std::span<const BlockId>(table->second);
}

const std::unordered_map<RequestId, std::vector<BlockId>>& CacheAllocator::block_tables() const noexcept {
  return tables_;
}

Result<void> CacheAllocator::append_step_inputs(const StepRow& row, GroupInputs& inputs) const {
  const Result<Row> found = find_row(row.request, row.past_length, row.query_length);
  if (!found) {
    return tl::unexpected<Error>(found.error());
  }
  if (inputs.block_table_offsets.empty()) {
    inputs.block_table_offsets.push_back(0);
  }
  inputs.block_table.insert(inputs.block_table.end(), found->table.begin(), found->table.end());
  inputs.block_table_offsets.push_back(static_cast<std::int32_t>(inputs.block_table.size()));
  append_write_indices(*found, inputs.slot_mapping);
  return {};
}

Result<std::vector<std::int32_t>> CacheAllocator::get_read_indices(RequestId request, std::int32_t past_length,
                                                                   std::int32_t query_length) const {
  return find_row(request, past_length, query_length).map([this](const Row& row) {
    std::vector<std::int32_t> indices;
    append_read_indices(row, indices);
    return indices;
  });
}

Result<std::vector<std::int32_t>> CacheAllocator::get_write_indices(RequestId request, std::int32_t past_length,
                                                                    std::int32_t query_length) const {
  return find_row(request, past_length, query_length).map([this](const Row& row) {
    std::vector<std::int32_t> indices;
    append_write_indices(row, indices);
    return indices;
  });
}

std::int32_t CacheAllocator::blocks_for_length(std::int32_t length) const {
  return troupe::blocks_for_length(layers_, block_size(), length);
}

std::int32_t CacheAllocator::slot(std::span<const BlockId> table, std::int32_t offset) const {
  return table[static_cast<std::size_t>(offset / block_size())] * block_size() + offset % block_size();
}

Result<CacheAllocator::Row> CacheAllocator::find_row(RequestId request, std::int32_t past_length,
                                                     std::int32_t query_length) const {
  const auto table = tables_.find(request);
  if (table == tables_.end()) {
    return tl::unexpected<Error>(no_table(request));
  }
  const auto describe = [=] {
    return "request " + std::to_string(request) + " with " + std::to_string(past_length) + " cached and " +
           std::to_string(query_length) + " query tokens";
  };
  if (past_length < 0 || query_length < 0 || past_length > kMaxLength - query_length) {
    return fail(ErrorCode::invalid_request, describe() + ": lengths are neither negative nor above 2^31-1 in sum");
  }
  const std::int32_t needed = blocks_for_length(past_length + query_length);
  if (static_cast<std::size_t>(needed) > table->second.size()) {
    return fail(ErrorCode::internal, describe() + " needs " + std::to_string(needed) + " blocks in group " +
                                         std::to_string(group_) + ", its table has " +
                                         std::to_string(table->second.size()));
  }
  return Row{.table = table->second, .past_length = past_length, .query_length = query_length};
}

Error CacheAllocator::no_table(RequestId request) const {
  return Error{ErrorCode::unknown_request,
               "request " + std::to_string(request) + " has no block table in group " + std::to_string(group_)};
}

std::int32_t blocks_for_length(const LayerGroup& group, std::int32_t block_size, std::int32_t length) {
  const std::int32_t positions = std::max(kept_positions(group, length), 0);
  return positions / block_size + (positions % block_size != 0 ? 1 : 0);
}

std::int32_t blocks_for_fork(const LayerGroup& group, std::int32_t block_size, bool block_sharing,
                             std::int32_t length) {
  const bool shares = block_sharing && group.type == AttentionType::full;
  const std::int32_t num_shared = shares ? std::max(length, 0) / block_size : 0;
  return blocks_for_length(group, block_size, length) - num_shared;
}

std::unique_ptr<CacheAllocator> make_cache_allocator(GroupId group, LayerGroup layers, BlockManager& manager,
                                                     bool block_sharing) {
  if (layers.type == AttentionType::sliding) {
    return std::make_unique<SlidingAttentionCacheAllocator>(group, std::move(layers), manager);
  }
  return std::make_unique<FullAttentionCacheAllocator>(group, std::move(layers), manager, block_sharing);
}

}  // namespace troupe

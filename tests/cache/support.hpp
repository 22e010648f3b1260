#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cache/block_manager.hpp"
#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe::test {

/// The message of a result's error, or "" if there is none: `CHECK(error_of(x) == "")` shows what is wrong.
template <class T>
std::string error_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

/// `ErrorCode::none` if there is no error.
template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result ? ErrorCode::none : result.error().code;
}

/// The tokens first, first + 1, ... last.
inline std::vector<TokenId> tokens_from_to(TokenId first, TokenId last) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(last - first + 1));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline LayerGroup full_group(std::vector<std::int32_t> layers = {0}) {
  return LayerGroup{.type = AttentionType::full, .sliding_window = 0, .layers = std::move(layers)};
}

inline LayerGroup sliding_group(std::int32_t window, std::vector<std::int32_t> layers = {0}) {
  return LayerGroup{.type = AttentionType::sliding, .sliding_window = window, .layers = std::move(layers)};
}

/// Takes shareable blocks of group 0 that follow `table` and appends them. The pool must have them.
inline void extend(BlockManager& manager, std::vector<BlockId>& table, std::int32_t num_blocks) {
  const auto last = table.empty() ? std::nullopt : std::optional(table.back());
  const std::vector<BlockId> taken = manager.get_free_blocks(num_blocks, last, /*shareable=*/true, 0).value();
  table.insert(table.end(), taken.begin(), taken.end());
}

/// Takes blocks of group 0 for all of `tokens` and completes the whole ones.
inline std::vector<BlockId> cache_tokens(BlockManager& manager, std::span<const TokenId> tokens) {
  const auto block_size = static_cast<std::size_t>(manager.block_size());
  std::vector<BlockId> table;
  extend(manager, table, static_cast<std::int32_t>((tokens.size() + block_size - 1) / block_size));
  const Result<void> marked = manager.mark_shareable_blocks_as_complete(
      static_cast<std::int32_t>(tokens.size() / block_size), table, tokens, 0);
  if (!marked) {
    throw std::runtime_error(marked.error().message);
  }
  return table;
}

/// The cached blocks of group 0 that `tokens` begin with, referenced.
inline std::vector<BlockId> find_prefix(BlockManager& manager, std::span<const TokenId> tokens) {
  return manager.acquire_prefix(manager.compute_hashes(tokens, 0), tokens, 0);
}

}  // namespace troupe::test

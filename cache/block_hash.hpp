#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "cache/types.hpp"

namespace troupe {

/// 128-bit hash of a chain of blocks.
struct BlockHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

/// Makes `BlockHash` a key of hash tables.
struct BlockHashHasher {
  [[nodiscard]] std::size_t operator()(const BlockHash& hash) const noexcept { return hash.low; }
};

/// Computes a block's hash from its parent's hash (nullopt for a first block), its tokens and its group.
using BlockHashFunction =
    std::function<BlockHash(std::optional<BlockHash> parent, std::span<const TokenId> tokens, GroupId group)>;

/// XXH3-128 of (whether there is a parent, its hash, the group, the tokens). The same in every process of one byte
/// order.
[[nodiscard]] BlockHash compute_block_hash(std::optional<BlockHash> parent, std::span<const TokenId> tokens,
                                           GroupId group);

}  // namespace troupe

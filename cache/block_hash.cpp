#include "cache/block_hash.hpp"

#include <array>

#include <xxhash.h>

namespace troupe {

BlockHash compute_block_hash(std::optional<BlockHash> parent, std::span<const TokenId> tokens, GroupId group) {
  const BlockHash chained = parent.value_or(BlockHash{});
  const std::array<std::uint64_t, 4> prefix = {parent.has_value() ? 1ULL : 0ULL, chained.low, chained.high,
                                               static_cast<std::uint64_t>(group)};
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, prefix.data(), sizeof prefix);
  XXH3_128bits_update(&state, tokens.data(), tokens.size_bytes());
  const XXH128_hash_t digest = XXH3_128bits_digest(&state);
  return BlockHash{.low = digest.low64, .high = digest.high64};
}

}  // namespace troupe

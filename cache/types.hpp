#pragma once

/// Names that every layer of troupe uses.

#include <cstdint>
#include <vector>

namespace troupe {

/// Index of a block in the cache, the same in every layer of the group that owns it.
using BlockId = std::int32_t;
/// Index of a layer group.
using GroupId = std::int32_t;
/// The engine's own number of a request; never used twice. Clients name requests by strings.
using RequestId = std::uint64_t;
/// A token of the model's vocabulary.
using TokenId = std::int32_t;
/// Number of a step, from 1 upwards.
using StepId = std::uint64_t;

/// How the layers of a group attend.
enum class AttentionType : std::uint8_t {
  /// A query sees every earlier position.
  full,
  /// A query sees the last `sliding_window` positions, its own included.
  sliding,
};

/// Layers of one attention type that share block ids.
struct LayerGroup {
  AttentionType type = AttentionType::full;
  /// Positions that a query of a sliding layer sees, its own included; 0 for full attention.
  std::int32_t sliding_window = 0;
  /// Indices of the model's layers, ascending. -1 is a padding layer.
  std::vector<std::int32_t> layers;

  friend bool operator==(const LayerGroup&, const LayerGroup&) = default;
};

/// One whole-block copy within a group, in all of its layers.
struct BlockCopy {
  BlockId source = 0;
  BlockId destination = 0;

  friend bool operator==(const BlockCopy&, const BlockCopy&) = default;
};

}  // namespace troupe

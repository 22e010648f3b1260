#include "cache/layer_groups.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>

namespace troupe {
namespace {

/// Each group costs a block table and an index list per request and step.
constexpr std::size_t kMaxUnpaddedGroups = 8;

std::vector<std::int32_t> layers_of(std::span<const AttentionType> layer_types, AttentionType type) {
  std::vector<std::int32_t> layers;
  for (std::size_t i = 0; i < layer_types.size(); ++i) {
    if (layer_types[i] == type) {
      layers.push_back(static_cast<std::int32_t>(i));
    }
  }
  return layers;
}

std::size_t choose_group_size(std::size_t num_first, std::size_t num_second) {
  const std::size_t divisor = std::gcd(num_first, num_second);
  const bool too_many = (num_first + num_second) / divisor > kMaxUnpaddedGroups;
  return too_many && num_second > 0 ? std::min(num_first, num_second) : divisor;
}

}  // namespace

Result<std::vector<LayerGroup>> make_layer_groups(std::span<const AttentionType> layer_types,
                                                  std::int32_t sliding_window) {
  if (layer_types.empty()) {
    return fail(ErrorCode::invalid_request, "layer types: expected at least one layer, found none");
  }
  const AttentionType first = layer_types.front();
  const AttentionType second = first == AttentionType::full ? AttentionType::sliding : AttentionType::full;
  const std::array<std::vector<std::int32_t>, 2> layers = {layers_of(layer_types, first),
                                                           layers_of(layer_types, second)};
  const std::size_t num_sliding = layers[first == AttentionType::sliding ? 0 : 1].size();
  if (num_sliding > 0 && sliding_window < 1) {
    return fail(ErrorCode::invalid_request, "sliding window: " + std::to_string(num_sliding) +
                                                " sliding layers need a window of at least 1, found " +
                                                std::to_string(sliding_window));
  }

  const std::size_t group_size = choose_group_size(layers[0].size(), layers[1].size());
  std::vector<LayerGroup> groups;
  for (const AttentionType type : {first, second}) {
    const std::vector<std::int32_t>& own = layers[type == first ? 0 : 1];
    for (std::size_t begin = 0; begin < own.size(); begin += group_size) {
      const std::size_t end = std::min(own.size(), begin + group_size);
      LayerGroup group{
          .type = type,
          .sliding_window = type == AttentionType::sliding ? sliding_window : 0,
          .layers = {own.begin() + static_cast<std::ptrdiff_t>(begin), own.begin() + static_cast<std::ptrdiff_t>(end)}};
      group.layers.resize(group_size, -1);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace troupe

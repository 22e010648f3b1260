#include "cache/layer_groups.hpp"

#include <algorithm>
#include <vector>

#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

constexpr AttentionType kFull = AttentionType::full;
constexpr AttentionType kSliding = AttentionType::sliding;

TEST_CASE("layers of one type are one group") {
  const std::vector<AttentionType> layers(5, kFull);
  const auto groups = make_layer_groups(layers, 0);
  REQUIRE(groups);
  CHECK(*groups == std::vector<LayerGroup>{full_group({0, 1, 2, 3, 4})});
}

TEST_CASE("a hybrid model is cut by the greatest common divisor of its counts") {
  const std::vector<AttentionType> layers = {kSliding, kSliding, kFull, kSliding, kSliding, kFull};
  const auto groups = make_layer_groups(layers, 16);
  REQUIRE(groups);
  CHECK(*groups == std::vector<LayerGroup>{sliding_group(16, {0, 1}), sliding_group(16, {3, 4}), full_group({2, 5})});
}

TEST_CASE("more than eight groups are avoided by padding layers") {
  // Gemma 3 with 34 layers: 29 sliding and 5 full would be 34 groups of one layer.
  std::vector<AttentionType> layers;
  for (int i = 0; i < 34; ++i) {
    layers.push_back(i % 6 == 5 ? kFull : kSliding);
  }
  const auto groups = make_layer_groups(layers, 512);
  REQUIRE(groups);
  CHECK(groups->size() == 7);
  std::vector<std::int32_t> seen;
  for (const LayerGroup& group : *groups) {
    CHECK(group.layers.size() == 5);
    for (const std::int32_t layer : group.layers) {
      if (layer >= 0) {
        CHECK(layers[static_cast<std::size_t>(layer)] == group.type);
        seen.push_back(layer);
      }
    }
  }
  std::ranges::sort(seen);
  CHECK(seen == tokens_from_to(0, 33));
}

TEST_CASE("no layers and a window that is missing are errors") {
  CHECK(code_of(make_layer_groups({}, 0)) == ErrorCode::invalid_request);
  const std::vector<AttentionType> layers = {kFull, kSliding};
  CHECK(code_of(make_layer_groups(layers, 0)) == ErrorCode::invalid_request);
}

}  // namespace
}  // namespace troupe::test

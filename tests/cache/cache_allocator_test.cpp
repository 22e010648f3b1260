#include "cache/cache_allocator.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

constexpr RequestId kRequest = 7;

/// Grows the request's table to `length` tokens.
void grow(CacheAllocator& allocator, std::int32_t length) {
  const auto held = static_cast<std::int32_t>(allocator.block_table(kRequest).size());
  const std::int32_t missing = allocator.blocks_for_length(length) - held;
  if (missing > 0) {
    REQUIRE(allocator.allocate_blocks(kRequest, missing) == missing);
  }
}

TEST_CASE("a full allocator reads every position and writes the new ones behind them") {
  BlockManager manager({.num_blocks = 8, .block_size = 4});
  const auto allocator = make_cache_allocator(0, full_group(), manager, true);
  grow(*allocator, 6);
  const std::vector<BlockId> table(allocator->block_table(kRequest).begin(), allocator->block_table(kRequest).end());
  REQUIRE(table.size() == 2);
  const auto slot = [&table](std::int32_t position) {
    return table[static_cast<std::size_t>(position / 4)] * 4 + position % 4;
  };

  const auto read = allocator->get_read_indices(kRequest, 3, 3);
  REQUIRE(read);
  REQUIRE(read->size() == 6);
  for (std::int32_t position = 0; position < 6; ++position) {
    CHECK((*read)[static_cast<std::size_t>(position)] == slot(position));
  }
  const auto write = allocator->get_write_indices(kRequest, 3, 3);
  REQUIRE(write);
  CHECK(*write == std::vector<std::int32_t>{slot(3), slot(4), slot(5)});
  CHECK(allocator->get_seqlens_k(3, 3) == 6);
}

TEST_CASE("a row that the table does not reach is an error") {
  BlockManager manager({.num_blocks = 8, .block_size = 4});
  const auto allocator = make_cache_allocator(0, full_group(), manager, true);
  CHECK_FALSE(allocator->get_write_indices(kRequest, 0, 1));
  grow(*allocator, 4);
  CHECK(allocator->get_write_indices(kRequest, 3, 1));
  CHECK_FALSE(allocator->get_write_indices(kRequest, 4, 1));
  CHECK_FALSE(allocator->get_write_indices(kRequest, -1, 1));
  GroupInputs inputs{.block_table_offsets = {0}};
  CHECK_FALSE(allocator->append_step_inputs({.request = kRequest, .past_length = 4, .query_length = 1}, inputs));
  CHECK(inputs.block_table.empty());
  CHECK(inputs.slot_mapping.empty());
}

// cb_bugs: rings with wrong indices at the window's borders. The ring is played against a map from slots to positions.
TEST_CASE("a ring holds exactly the window at every length") {
  const std::int32_t window = GENERATE(1, 3, 4, 6, 8, 16);
  const std::int32_t block_size = GENERATE(1, 4);
  const std::int32_t chunk = GENERATE(1, 2, 5, 7, 64);
  CAPTURE(window, block_size, chunk);
  BlockManager manager({.num_blocks = 32, .block_size = block_size});
  const auto allocator = make_cache_allocator(0, sliding_group(window), manager, true);
  const std::int32_t length = 3 * window + 2;
  std::map<std::int32_t, std::int32_t> position_in;
  for (std::int32_t past = 0; past < length; past += chunk) {
    const std::int32_t query = std::min(chunk, length - past);
    grow(*allocator, past + query);
    CAPTURE(past, query);
    // What the first query token may see of the past is still there when the step starts.
    const auto read = allocator->get_read_indices(kRequest, past, query);
    REQUIRE(read);
    const std::int32_t num_cached = std::min(past, window - 1);
    REQUIRE(static_cast<std::int32_t>(read->size()) == num_cached + query);
    REQUIRE(allocator->get_seqlens_k(past, query) == num_cached + query);
    for (std::int32_t i = 0; i < num_cached; ++i) {
      CHECK(position_in.at((*read)[static_cast<std::size_t>(i)]) == past - num_cached + i);
    }
    for (std::int32_t i = num_cached; i < num_cached + query; ++i) {
      CHECK((*read)[static_cast<std::size_t>(i)] == -1);
    }
    const auto write = allocator->get_write_indices(kRequest, past, query);
    REQUIRE(write);
    REQUIRE(static_cast<std::int32_t>(write->size()) == query);
    std::set<std::int32_t> written;
    for (std::int32_t i = 0; i < query; ++i) {
      const std::int32_t slot = (*write)[static_cast<std::size_t>(i)];
      // Only the last window of the step survives it.
      CHECK((slot == -1) == (i < query - window));
      if (slot >= 0) {
        CHECK(written.insert(slot).second);
        position_in[slot] = past + i;
      }
    }
  }
  CHECK(static_cast<std::int32_t>(allocator->block_table(kRequest).size()) == (window + block_size - 1) / block_size);
}

TEST_CASE("a full ring takes no more blocks and a request for more gives fewer") {
  BlockManager manager({.num_blocks = 8, .block_size = 4});
  const auto allocator = make_cache_allocator(0, sliding_group(6), manager, true);
  CHECK(allocator->blocks_to_allocate(kRequest, 5) == 2);
  CHECK(allocator->allocate_blocks(kRequest, 5) == 2);
  CHECK(allocator->allocate_blocks(kRequest, 1) == 0);
  CHECK(manager.counts().in_use == 2);
  CHECK(allocator->free_blocks(kRequest));
  CHECK(manager.counts().uninitialized == 8);
}

TEST_CASE("an allocation that does not fit leaves no table") {
  BlockManager manager({.num_blocks = 2, .block_size = 4});
  const auto allocator = make_cache_allocator(0, full_group(), manager, true);
  CHECK_FALSE(allocator->allocate_blocks(kRequest, 3));
  CHECK(allocator->block_tables().empty());
  CHECK_FALSE(allocator->free_blocks(kRequest));
}

TEST_CASE("a fork copies the partial block of a full group and the whole ring of a sliding one") {
  BlockManager manager({.num_blocks = 16, .block_size = 4});
  const auto full = make_cache_allocator(0, full_group(), manager, true);
  grow(*full, 10);
  REQUIRE(error_of(full->mark_shareable_blocks_as_complete(kRequest, 2, tokens_from_to(1, 10))) == "");
  const std::vector<RequestId> children = {8, 9};
  const auto copies = full->fork_blocks(kRequest, children);
  REQUIRE(copies);
  REQUIRE(copies->size() == 2);
  for (const RequestId child : children) {
    const auto table = full->block_table(child);
    REQUIRE(table.size() == 3);
    CHECK(table[0] == full->block_table(kRequest)[0]);
    CHECK(table[1] == full->block_table(kRequest)[1]);
    CHECK(table[2] != full->block_table(kRequest)[2]);
  }
  CHECK((*copies)[0].source == full->block_table(kRequest)[2]);
  CHECK((*copies)[0].destination == full->block_table(8)[2]);

  const auto ring = make_cache_allocator(1, sliding_group(6), manager, true);
  REQUIRE(ring->allocate_blocks(kRequest, 2) == 2);
  const std::vector<RequestId> child = {8};
  const auto ring_copies = ring->fork_blocks(kRequest, child);
  REQUIRE(ring_copies);
  CHECK(ring_copies->size() == 2);
  CHECK(code_of(ring->fork_blocks(kRequest, child)) != ErrorCode::none);
  CHECK(code_of(ring->fork_blocks(99, child)) != ErrorCode::none);
}

}  // namespace
}  // namespace troupe::test

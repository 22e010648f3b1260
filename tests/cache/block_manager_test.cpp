#include "cache/block_manager.hpp"

#include <optional>
#include <vector>

#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

using Ids = std::vector<BlockId>;

bool same_state(const BlockManagerSnapshot& left, const BlockManagerSnapshot& right) {
  const auto same_block = [](const Block& a, const Block& b) {
    return a.state == b.state && a.ref_count == b.ref_count && a.parent == b.parent && a.hash == b.hash;
  };
  return left.uninitialized == right.uninitialized && left.initialized == right.initialized &&
         left.hash_to_block.size() == right.hash_to_block.size() &&
         std::equal(left.blocks.begin(), left.blocks.end(), right.blocks.begin(), right.blocks.end(), same_block);
}

/// A manager of blocks of four slots.
BlockManagerOptions blocks_of_four(std::int32_t num_blocks) {
  return BlockManagerOptions{.num_blocks = num_blocks, .block_size = 4, .hash = {}};
}

}  // namespace

TEST_CASE("blocks are handed out first in first out") {
  BlockManager manager(blocks_of_four(4));
  const auto first = manager.get_free_blocks(3, std::nullopt, false, 0);
  REQUIRE(first == Ids{0, 1, 2});
  REQUIRE(error_of(manager.free_blocks(Ids{1, 0})) == "");
  // Released in reverse, behind what was never used.
  CHECK(manager.get_free_blocks(3, std::nullopt, false, 0) == Ids{3, 0, 1});
}

TEST_CASE("an allocation that does not fit changes nothing") {
  BlockManager manager(blocks_of_four(3));
  const Ids table = cache_tokens(manager, tokens_from_to(1, 8));
  REQUIRE(error_of(manager.free_blocks(table)) == "");
  const BlockManagerSnapshot before = manager.snapshot();

  CHECK_FALSE(manager.get_free_blocks(4, std::nullopt, true, 0).has_value());

  CHECK(same_state(manager.snapshot(), before));
  CHECK(manager.has_enough_free_blocks(3));
  CHECK(same_state(manager.snapshot(), before));
}

TEST_CASE("an allocation evicts only what is missing") {
  BlockManager manager(blocks_of_four(6));
  REQUIRE(error_of(manager.free_blocks(cache_tokens(manager, tokens_from_to(1, 16)))) == "");
  REQUIRE(manager.get_free_blocks(3, std::nullopt, false, 0).has_value());
  CHECK(manager.counts().initialized == 3);
}

TEST_CASE("eviction takes the least recently used sequence first and its leaves before their parents") {
  BlockManager manager(blocks_of_four(4));
  const Ids older = cache_tokens(manager, tokens_from_to(1, 8));
  const Ids newer = cache_tokens(manager, tokens_from_to(101, 108));
  REQUIRE(error_of(manager.free_blocks(older)) == "");
  REQUIRE(error_of(manager.free_blocks(newer)) == "");

  CHECK(manager.get_free_blocks(1, std::nullopt, false, 0) == Ids{older[1]});
  CHECK(manager.get_free_blocks(2, std::nullopt, false, 0) == Ids{older[0], newer[1]});
  CHECK(find_prefix(manager, tokens_from_to(101, 108)) == Ids{newer[0]});
}

TEST_CASE("a prefix hit makes a cached sequence the most recently used one") {
  BlockManager manager(blocks_of_four(4));
  const Ids older = cache_tokens(manager, tokens_from_to(1, 8));
  const Ids newer = cache_tokens(manager, tokens_from_to(101, 108));
  REQUIRE(error_of(manager.free_blocks(older)) == "");
  REQUIRE(error_of(manager.free_blocks(newer)) == "");
  REQUIRE(error_of(manager.free_blocks(find_prefix(manager, tokens_from_to(1, 8)))) == "");

  CHECK(manager.get_free_blocks(2, std::nullopt, false, 0) == Ids{newer[1], newer[0]});
}

TEST_CASE("a recycled block remembers nothing of its former sequence") {
  BlockManager manager(blocks_of_four(2));
  REQUIRE(error_of(manager.free_blocks(cache_tokens(manager, tokens_from_to(1, 8)))) == "");
  REQUIRE(manager.get_free_blocks(2, std::nullopt, true, 1).has_value());

  const Block recycled = manager.snapshot().blocks.at(0);
  CHECK(recycled.group == 1);
  CHECK_FALSE(recycled.is_complete());
  CHECK(recycled.tokens.empty());
  CHECK(recycled.parent == std::optional<BlockId>(1));
  CHECK_FALSE(manager.snapshot().blocks.at(1).parent.has_value());
  CHECK(find_prefix(manager, tokens_from_to(1, 8)).empty());
}

TEST_CASE("a double free is refused and changes nothing") {
  BlockManager manager(blocks_of_four(6));
  const Ids complete = cache_tokens(manager, tokens_from_to(1, 8));
  const Ids plain = manager.get_free_blocks(2, std::nullopt, false, 0).value();
  REQUIRE(error_of(manager.free_blocks(Ids{plain[1]})) == "");
  const BlockManagerSnapshot before = manager.snapshot();

  SECTION("of a block that is free") {
    CHECK(code_of(manager.free_blocks(Ids{plain[0], complete[0], plain[1]})) == ErrorCode::internal);
  }
  SECTION("of a block named twice") {
    CHECK(code_of(manager.free_blocks(Ids{complete[0], complete[1], complete[0]})) == ErrorCode::internal);
  }
  SECTION("of ids that no block has") {
    CHECK(code_of(manager.free_blocks(Ids{complete[0], 6})) == ErrorCode::internal);
    CHECK(code_of(manager.free_blocks(Ids{complete[0], -1})) == ErrorCode::internal);
  }
  CHECK(same_state(manager.snapshot(), before));
}

TEST_CASE("a block named as often as it is referenced is released once") {
  BlockManager manager(blocks_of_four(4));
  const Ids table = cache_tokens(manager, tokens_from_to(1, 4));
  REQUIRE(find_prefix(manager, tokens_from_to(1, 4)) == table);
  REQUIRE(error_of(manager.free_blocks(Ids{table[0], table[0]})) == "");
  CHECK(manager.snapshot().initialized == table);
  CHECK(error_of(manager.check_invariants()) == "");
}

TEST_CASE("impossible allocations are refused") {
  BlockManager manager(blocks_of_four(4));
  CHECK_FALSE(manager.get_free_blocks(-1, std::nullopt, false, 0).has_value());
  CHECK_FALSE(manager.get_free_blocks(1, std::nullopt, false, -1).has_value());
  CHECK_FALSE(manager.get_free_blocks(1, std::nullopt, false, 1 << 30).has_value());
  CHECK_FALSE(manager.get_free_blocks(1, 3, true, 0).has_value());
  CHECK_FALSE(manager.get_free_blocks(1, 4, true, 0).has_value());
  CHECK(manager.get_free_blocks(0, std::nullopt, false, 0) == Ids{});
  CHECK_FALSE(BlockManager({.num_blocks = -3, .block_size = -1, .hash = {}})
                  .get_free_blocks(1, std::nullopt, false, 0)
                  .has_value());
}

TEST_CASE("a reservation is kept from everybody who does not claim it") {
  BlockManager manager(blocks_of_four(5));
  REQUIRE(manager.reserve(3));
  CHECK_FALSE(manager.reserve(3));
  CHECK_FALSE(manager.reserve(-1));
  CHECK(manager.num_free_blocks() == 5);
  CHECK(manager.num_available_blocks() == 2);
  CHECK_FALSE(manager.has_enough_free_blocks(3));
  CHECK_FALSE(manager.get_free_blocks(3, std::nullopt, false, 0).has_value());
  REQUIRE(manager.get_free_blocks(2, std::nullopt, false, 0).has_value());

  CHECK_FALSE(manager.get_free_blocks(4, std::nullopt, false, 0, Claim::reserved).has_value());
  REQUIRE(manager.get_free_blocks(2, std::nullopt, false, 0, Claim::reserved).has_value());
  CHECK(manager.counts().reserved == 1);

  manager.cancel_reservation(1);
  CHECK(manager.num_available_blocks() == 1);
  CHECK(error_of(manager.check_invariants()) == "");
}

TEST_CASE("taking back more than was reserved is reported") {
  BlockManager manager(blocks_of_four(5));
  REQUIRE(manager.reserve(1));
  manager.cancel_reservation(2);
  CHECK(manager.num_available_blocks() == 5);
  CHECK(code_of(manager.check_invariants()) == ErrorCode::internal);
}

TEST_CASE("a fork shares complete blocks and copies the rest for each child") {
  BlockManager manager(blocks_of_four(10));
  const Ids parent = cache_tokens(manager, tokens_from_to(1, 10));
  const Result<BlockFork> fork = manager.fork_blocks(parent, 2, true, 0);
  REQUIRE(error_of(fork) == "");
  CHECK(fork->children == std::vector<Ids>{{0, 1, 3}, {0, 1, 4}});
  CHECK(fork->copies == std::vector<BlockCopy>{{2, 3}, {2, 4}});
  CHECK(manager.snapshot().blocks.at(4).parent == std::optional<BlockId>(1));
  const std::vector<std::span<const BlockId>> tables = {parent, fork->children[0], fork->children[1]};
  CHECK(error_of(manager.check_invariants(tables)) == "");
}

TEST_CASE("a fork of blocks that are not shareable copies them all") {
  BlockManager manager(blocks_of_four(6));
  const Ids parent = manager.get_free_blocks(2, std::nullopt, false, 0).value();
  CHECK(manager.count_blocks_to_copy(parent) == 2);
  const Result<BlockFork> fork = manager.fork_blocks(parent, 2, false, 0);
  REQUIRE(error_of(fork) == "");
  CHECK(fork->children == std::vector<Ids>{{2, 3}, {4, 5}});
  CHECK(fork->copies == std::vector<BlockCopy>{{0, 2}, {1, 3}, {0, 4}, {1, 5}});
}

TEST_CASE("a fork that does not fit leaves nothing behind") {
  BlockManager manager(blocks_of_four(5));
  const Ids parent = cache_tokens(manager, tokens_from_to(1, 10));
  const BlockManagerSnapshot before = manager.snapshot();
  CHECK(code_of(manager.fork_blocks(parent, 3, true, 0)) == ErrorCode::out_of_blocks);
  CHECK(code_of(manager.fork_blocks(parent, -1, true, 0)) == ErrorCode::invalid_request);
  CHECK(code_of(manager.fork_blocks(Ids{0, 4}, 1, true, 0)) == ErrorCode::internal);
  CHECK(code_of(manager.fork_blocks(parent, 1, true, 0, Claim::reserved)) == ErrorCode::out_of_blocks);
  CHECK(same_state(manager.snapshot(), before));
}

TEST_CASE("counts tell the blocks of each group and state") {
  BlockManager manager(blocks_of_four(10));
  REQUIRE(error_of(manager.free_blocks(cache_tokens(manager, tokens_from_to(1, 8)))) == "");
  REQUIRE(manager.get_free_blocks(3, std::nullopt, false, 2).has_value());
  REQUIRE(manager.reserve(4));
  const BlockCounts counts = manager.counts();
  CHECK(counts.in_use == 3);
  CHECK(counts.initialized == 2);
  CHECK(counts.uninitialized == 5);
  CHECK(counts.reserved == 4);
  CHECK(counts.in_use_by_group == std::vector<std::int32_t>{0, 0, 3});
  CHECK(counts.initialized_by_group == std::vector<std::int32_t>{2, 0, 0});
}

TEST_CASE("tables that do not match the reference counts are reported") {
  BlockManager manager(blocks_of_four(4));
  const Ids table = cache_tokens(manager, tokens_from_to(1, 8));
  const auto check = [&](std::vector<std::span<const BlockId>> tables) {
    return code_of(manager.check_invariants(tables));
  };
  CHECK(check({table}) == ErrorCode::none);
  CHECK(check({}) == ErrorCode::internal);
  CHECK(check({table, table}) == ErrorCode::internal);
  CHECK(check({Ids{0, 1, 4}}) == ErrorCode::internal);
}

}  // namespace troupe::test

#include <cstdint>
#include <optional>
#include <vector>

#include "cache/block_manager.hpp"
#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

using Ids = std::vector<BlockId>;

BlockManagerOptions blocks_of_four(std::int32_t num_blocks, BlockHashFunction hash = {}) {
  return BlockManagerOptions{.num_blocks = num_blocks, .block_size = 4, .hash = std::move(hash)};
}

BlockHash constant_hash(std::optional<BlockHash> /*parent*/, std::span<const TokenId> /*tokens*/, GroupId /*group*/) {
  return BlockHash{};
}

BlockHash eight_bit_hash(std::optional<BlockHash> parent, std::span<const TokenId> tokens, GroupId group) {
  return BlockHash{.low = compute_block_hash(parent, tokens, group).low % 256, .high = 0};
}

}  // namespace

TEST_CASE("a released sequence is found again by its tokens") {
  BlockManager manager(blocks_of_four(8));
  const Ids table = cache_tokens(manager, tokens_from_to(1, 10));
  REQUIRE(error_of(manager.free_blocks(table)) == "");
  CHECK(find_prefix(manager, tokens_from_to(1, 9)) == Ids{table[0], table[1]});
  CHECK(find_prefix(manager, tokens_from_to(1, 7)) == Ids{table[0]});
  CHECK(find_prefix(manager, tokens_from_to(2, 9)).empty());
  CHECK(find_prefix(manager, {}).empty());
}

TEST_CASE("equal blocks after different beginnings are different blocks") {
  BlockManager manager(blocks_of_four(8));
  const Ids first = cache_tokens(manager, std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8});
  const Ids second = cache_tokens(manager, std::vector<TokenId>{9, 2, 3, 4, 5, 6, 7, 8});
  CHECK(second == Ids{2, 3});
  CHECK(find_prefix(manager, std::vector<TokenId>{9, 2, 3, 4, 5, 6, 7, 8}) == second);
  CHECK(find_prefix(manager, std::vector<TokenId>{5, 6, 7, 8}).empty());
  CHECK(first == Ids{0, 1});
}

TEST_CASE("equal tokens of different groups are different blocks") {
  BlockManager manager(blocks_of_four(8));
  cache_tokens(manager, tokens_from_to(1, 4));
  const std::vector<TokenId> tokens = tokens_from_to(1, 4);
  CHECK(manager.acquire_prefix(manager.compute_hashes(tokens, 1), tokens, 1).empty());
  CHECK(manager.acquire_prefix(manager.compute_hashes(tokens, 0), tokens, 1).empty());
}

TEST_CASE("a duplicate becomes un-initialized without a hash and the next block follows the original") {
  BlockManager manager(blocks_of_four(8));
  const Ids original = cache_tokens(manager, tokens_from_to(1, 4));
  Ids table;
  extend(manager, table, 3);
  const Ids own = table;

  REQUIRE(error_of(manager.mark_shareable_blocks_as_complete(1, table, tokens_from_to(1, 9), 0)) == "");

  CHECK(table == Ids{original[0], own[1], own[2]});
  const BlockManagerSnapshot after = manager.snapshot();
  CHECK(after.uninitialized.back() == own[0]);
  CHECK(after.initialized.empty());
  CHECK(after.blocks.at(1).state == BlockState::uninitialized);
  CHECK(after.blocks.at(2).parent == original[0]);
  const std::vector<std::span<const BlockId>> tables = {original, table};
  CHECK(error_of(manager.check_invariants(tables)) == "");
}

TEST_CASE("a duplicate of a block that nobody uses revives that block") {
  BlockManager manager(blocks_of_four(4));
  const Ids original = cache_tokens(manager, tokens_from_to(1, 4));
  Ids table;
  extend(manager, table, 1);
  REQUIRE(error_of(manager.free_blocks(original)) == "");

  REQUIRE(error_of(manager.mark_shareable_blocks_as_complete(1, table, tokens_from_to(1, 4), 0)) == "");

  CHECK(table == original);
  CHECK(manager.counts().initialized == 0);
  const std::vector<std::span<const BlockId>> tables = {table};
  CHECK(error_of(manager.check_invariants(tables)) == "");
  // Nobody else can be given the revived block.
  CHECK(manager.get_free_blocks(3, std::nullopt, false, 0) == Ids{2, 3, 1});
}

TEST_CASE("a revival by a duplicate does not eat a reservation") {
  BlockManager manager(blocks_of_four(2));
  const Ids original = cache_tokens(manager, tokens_from_to(1, 4));
  Ids table;
  extend(manager, table, 1);
  REQUIRE(error_of(manager.free_blocks(original)) == "");
  REQUIRE(manager.reserve(1));

  REQUIRE(error_of(manager.mark_shareable_blocks_as_complete(1, table, tokens_from_to(1, 4), 0)) == "");

  CHECK(error_of(manager.check_invariants()) == "");
  CHECK(manager.get_free_blocks(1, std::nullopt, false, 0, Claim::reserved).has_value());
}

TEST_CASE("a prefix search stops before a revival that would eat a reservation") {
  BlockManager manager(blocks_of_four(4));
  const Ids table = cache_tokens(manager, tokens_from_to(1, 16));
  REQUIRE(error_of(manager.free_blocks(table)) == "");
  REQUIRE(manager.reserve(3));
  CHECK(find_prefix(manager, tokens_from_to(1, 16)) == Ids{table[0]});
  CHECK(error_of(manager.check_invariants()) == "");
  // A block in use costs nothing.
  CHECK(find_prefix(manager, tokens_from_to(1, 16)) == Ids{table[0]});
}

TEST_CASE("tokens may be given from the first incomplete block on") {
  BlockManager manager(blocks_of_four(8));
  Ids table = cache_tokens(manager, tokens_from_to(1, 8));
  extend(manager, table, 2);
  REQUIRE(error_of(manager.mark_shareable_blocks_as_complete(2, table, tokens_from_to(9, 16), 0, 8)) == "");
  CHECK(find_prefix(manager, tokens_from_to(1, 16)) == table);
}

TEST_CASE("a completion that cannot be right is refused and changes nothing") {
  BlockManager manager(blocks_of_four(8));
  Ids table = cache_tokens(manager, tokens_from_to(1, 4));
  extend(manager, table, 2);
  const Ids plain = manager.get_free_blocks(1, std::nullopt, false, 0).value();
  const auto mark = [&](Ids blocks, std::vector<TokenId> tokens, GroupId group, std::int32_t first_position) {
    return code_of(manager.mark_shareable_blocks_as_complete(2, blocks, tokens, group, first_position));
  };

  CHECK(mark(table, tokens_from_to(1, 11), 0, 0) == ErrorCode::invalid_request);
  CHECK(mark(table, tokens_from_to(5, 11), 0, 4) == ErrorCode::invalid_request);
  CHECK(mark(table, tokens_from_to(9, 20), 0, 8) == ErrorCode::invalid_request);
  CHECK(mark(table, tokens_from_to(4, 20), 0, 3) == ErrorCode::invalid_request);
  CHECK(mark(table, tokens_from_to(1, 20), 0, -4) == ErrorCode::invalid_request);
  CHECK(mark(table, tokens_from_to(1, 20), 1, 0) == ErrorCode::internal);
  CHECK(mark(plain, tokens_from_to(1, 20), 0, 0) == ErrorCode::internal);
  CHECK(mark({7}, tokens_from_to(1, 20), 0, 0) == ErrorCode::internal);
  CHECK(mark({99}, tokens_from_to(1, 20), 0, 0) == ErrorCode::internal);
  CHECK(manager.snapshot().hash_to_block.size() == 1);
  CHECK(mark(table, tokens_from_to(1, 12), 0, 0) == ErrorCode::none);
}

TEST_CASE("an evicted block is never found") {
  BlockManager manager(blocks_of_four(6));
  const std::vector<TokenId> first = tokens_from_to(10, 25);
  const std::vector<TokenId> second = tokens_from_to(200, 217);
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    for (const std::vector<TokenId>& prompt : {first, second}) {
      Ids table = find_prefix(manager, prompt);
      for (std::size_t i = 0; i < table.size(); ++i) {
        const Block block = manager.snapshot().blocks.at(static_cast<std::size_t>(table[i]));
        CHECK(
            std::equal(block.tokens.begin(), block.tokens.end(), prompt.begin() + static_cast<std::ptrdiff_t>(4 * i)));
      }
      const auto num_found = static_cast<std::int32_t>(table.size());
      extend(manager, table, 5 - num_found);
      REQUIRE(error_of(manager.mark_shareable_blocks_as_complete(4 - num_found, table, prompt, 0)) == "");
      const std::vector<std::span<const BlockId>> tables = {table};
      REQUIRE(error_of(manager.check_invariants(tables)) == "");
      REQUIRE(error_of(manager.free_blocks(table)) == "");
    }
  }
}

TEST_CASE("equal hashes of different tokens never give a wrong hit") {
  const BlockHashFunction hash = GENERATE(as<BlockHashFunction>{}, constant_hash, eight_bit_hash);
  BlockManager manager(blocks_of_four(600, hash));
  int num_hits = 0;
  for (TokenId i = 0; i < 500; ++i) {
    const std::vector<TokenId> tokens = tokens_from_to(i, i + 15);
    Ids table = find_prefix(manager, tokens);
    for (std::size_t block = 0; block < table.size(); ++block) {
      CHECK(manager.snapshot().blocks.at(static_cast<std::size_t>(table[block])).tokens.front() == tokens[4 * block]);
    }
    num_hits += static_cast<int>(table.size());
    extend(manager, table, 4 - static_cast<std::int32_t>(table.size()));
    REQUIRE(error_of(manager.mark_shareable_blocks_as_complete(4, table, tokens, 0)) == "");
    REQUIRE(error_of(manager.check_invariants()) == "");
    REQUIRE(error_of(manager.free_blocks(table)) == "");
  }
  // No two of these sequences begin alike.
  CHECK(num_hits == 0);
}

TEST_CASE("a block whose hash collides is shared by forks but not found and neither are its successors") {
  BlockManager manager(blocks_of_four(8, constant_hash));
  const Ids first = cache_tokens(manager, tokens_from_to(1, 4));
  Ids second = cache_tokens(manager, tokens_from_to(101, 108));
  CHECK(find_prefix(manager, tokens_from_to(101, 108)).empty());
  CHECK(find_prefix(manager, tokens_from_to(1, 4)) == first);
  CHECK(manager.count_blocks_to_copy(second) == 0);

  // Completing goes on behind them.
  extend(manager, second, 1);
  CHECK(manager.count_blocks_to_copy(second) == 1);
  REQUIRE(error_of(manager.mark_shareable_blocks_as_complete(1, second, tokens_from_to(109, 112), 0, 8)) == "");
  CHECK(manager.count_blocks_to_copy(second) == 0);
  CHECK(error_of(manager.check_invariants()) == "");
  REQUIRE(error_of(manager.free_blocks(second)) == "");
  CHECK(manager.counts().initialized == 0);
}

TEST_CASE("a block whose parent was evicted before it is not found and gives way to its successor") {
  BlockManager manager(blocks_of_four(4));
  const std::vector<TokenId> tokens = tokens_from_to(1, 8);
  const Ids table = cache_tokens(manager, tokens);
  // Against the rules: the parent is released while the child is in use, and its block is then given away.
  REQUIRE(error_of(manager.free_blocks(Ids{table[0]})) == "");
  REQUIRE(manager.get_free_blocks(3, std::nullopt, false, 0).has_value());
  REQUIRE(error_of(manager.free_blocks(Ids{2, 3})) == "");

  const Ids again = cache_tokens(manager, tokens);
  CHECK(again == Ids{3, 2});
  CHECK(find_prefix(manager, tokens) == again);
  CHECK(error_of(manager.check_invariants()) == "");
  REQUIRE(error_of(manager.free_blocks(Ids{table[1]})) == "");
  CHECK(manager.snapshot().initialized.empty());
}

}  // namespace troupe::test

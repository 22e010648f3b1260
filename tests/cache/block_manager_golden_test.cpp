#include <optional>
#include <vector>

#include "cache/block_manager.hpp"
#include "tests/cache/golden_trace.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

constexpr int kComparedOperations = 2496;

/// The original's `has_enough_free_blocks` evicts what is missing. Ours does not: taking the blocks and giving them
/// back at once leaves the same state.
bool has_enough_evicting(BlockManager& manager, std::int32_t num_blocks) {
  if (!manager.has_enough_free_blocks(num_blocks)) {
    return false;
  }
  if (num_blocks > manager.counts().uninitialized) {
    const auto taken = manager.get_free_blocks(num_blocks, std::nullopt, /*shareable=*/false, /*group=*/0);
    return taken.has_value() && manager.free_blocks(*taken).has_value();
  }
  return true;
}

json replay_fork(BlockManager& manager, const json& args) {
  const auto parent = args.at("parent_blocks").get<std::vector<BlockId>>();
  const Result<BlockFork> fork =
      manager.fork_blocks(parent, args.at("num_forks"), args.at("shareable"), args.at("group_id"));
  if (!fork) {
    return {nullptr, json::array(), json::array()};
  }
  json sources = json::array();
  json destinations = json::array();
  for (const BlockCopy& copy : fork->copies) {
    sources.push_back(copy.source);
    destinations.push_back(copy.destination);
  }
  return {fork->children, sources, destinations};
}

/// The traces of completions do not name the group; the original takes it from the blocks' records.
GroupId group_of(const BlockManager& manager, const std::vector<BlockId>& table) {
  return table.empty() ? 0 : manager.snapshot().blocks.at(static_cast<std::size_t>(table.front())).group;
}

json replay(BlockManager& manager, const json& operation) {
  const std::string name = operation.at("op");
  const json& args = operation.at("args");
  if (name == "has_enough") {
    return has_enough_evicting(manager, args.at("n_blocks"));
  }
  if (name == "get_free_blocks") {
    const json& last = args.at("last_block_id");
    const auto taken =
        manager.get_free_blocks(args.at("n_blocks"), last.is_null() ? std::nullopt : std::optional<BlockId>(last),
                                args.at("shareable"), args.at("group_id"));
    return taken ? json(*taken) : json();
  }
  if (name == "free") {
    return manager.free_blocks(args.at("blocks").get<std::vector<BlockId>>()) ? json() : json("error");
  }
  if (name == "fork") {
    return replay_fork(manager, args);
  }
  REQUIRE(name == "mark");
  auto table = args.at("allocated_blocks").get<std::vector<BlockId>>();
  const auto tokens = args.at("prompt_ids").get<std::vector<TokenId>>();
  const Result<void> marked = manager.mark_shareable_blocks_as_complete(args.at("num_complete_blocks"), table, tokens,
                                                                        group_of(manager, table));
  CHECK(json(table) == operation.at("allocated_blocks_after"));
  return marked ? json() : json(marked.error().message);
}

}  // namespace

TEST_CASE("block manager gives the results and states that the original recorded", "[golden]") {
  int num_compared = 0;
  for (const GoldenTrace& trace : read_golden_traces("block_manager.jsonl.gz")) {
    BlockManager manager({.num_blocks = trace.header.at("num_blocks"),
                          .block_size = trace.header.at("block_size"),
                          .eviction = EvictionOrder::last_in_first_out,
                          .hash = {}});
    GoldenHashes hashes;
    for (const json& operation : trace.operations) {
      INFO(trace.name << " " << operation.at("i") << " " << operation.at("op") << " " << operation.at("args"));
      hashes.define(operation);
      const json result = replay(manager, operation);
      REQUIRE(result == operation.at("res"));
      REQUIRE(to_golden_state(manager.snapshot(), hashes) == without_stale_records(operation.at("state")));
      const Result<void> invariants = manager.check_invariants();
      INFO((invariants ? "" : invariants.error().message));
      REQUIRE(invariants.has_value());
      ++num_compared;
    }
  }
  WARN("compared " << num_compared << " operations");
  REQUIRE(num_compared == kComparedOperations);
}

}  // namespace troupe::test

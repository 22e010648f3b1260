#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/paged_attention_cache.hpp"
#include "tests/cache/golden_trace.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

constexpr int kComparedOperations = 4350;

/// Replays one trace. Where the original changes its state on the way to a failure, ours must refuse without a change;
/// the original's change is then made by hand, so that the rest of the trace can be compared.
class Replay {
 public:
  explicit Replay(const GoldenTrace& trace)
      : cache_({.num_blocks = trace.header.at("num_blocks"),
                .block_size = trace.header.at("block_size"),
                .eviction = EvictionOrder::last_in_first_out,
                .hash = {}},
               groups(trace.header), trace.header.at("block_sharing")) {}

  /// Runs an operation and returns its result as the trace would show it.
  json run(const json& operation) {
    hashes_.define(operation);
    const std::string name = operation.at("op");
    const json& args = operation.at("args");
    if (name == "allocate_blocks") {
      return allocate(args, operation.at("res"));
    }
    if (name == "free_blocks") {
      cache_.free_blocks(id(args.at("rid")));
      return nullptr;
    }
    if (name == "search_prefix_match") {
      return search(args, operation.at("res"));
    }
    if (name == "fork_request") {
      return fork(args);
    }
    if (name == "indices") {
      return indices(args, operation.at("res"));
    }
    REQUIRE(name == "mark_shareable_blocks_as_complete");
    const Result<void> marked = cache_.mark_shareable_blocks_as_complete(
        id(args.at("rid")), args.at("num_complete_blocks"), args.at("token_ids").get<std::vector<TokenId>>());
    return marked ? json() : json(marked.error().message);
  }

  [[nodiscard]] json state() const {
    json state = to_golden_state(cache_.manager().snapshot(), hashes_);
    state["tables"] = json::array();
    for (GroupId group = 0; group < cache_.num_groups(); ++group) {
      json tables = json::object();
      for (const auto& [request, table] : cache_.allocator(group).block_tables()) {
        tables[names_.at(request)] = table;
      }
      state["tables"].push_back(tables);
    }
    return state;
  }

  [[nodiscard]] Result<void> check_invariants() const { return cache_.check_invariants(); }

 private:
  static std::vector<LayerGroup> groups(const json& header) {
    std::vector<LayerGroup> result;
    for (const json& type : header.at("groups")) {
      const bool sliding = type == "sliding_attention";
      result.push_back(LayerGroup{.type = sliding ? AttentionType::sliding : AttentionType::full,
                                  .sliding_window = sliding ? header.at("sliding_window").get<std::int32_t>() : 0,
                                  .layers = {static_cast<std::int32_t>(result.size())}});
    }
    return result;
  }

  RequestId id(const std::string& name) {
    const auto [entry, inserted] = ids_.try_emplace(name, ids_.size());
    if (inserted) {
      names_.emplace(entry->second, name);
    }
    return entry->second;
  }

  json allocate(const json& args, const json& recorded) {
    const RequestId request = id(args.at("rid"));
    const std::int32_t num_blocks = args.at("n_blocks");
    const json before = state();
    const std::optional<std::int32_t> granted = cache_.allocate_blocks(request, num_blocks);
    if (!granted) {
      REQUIRE(state() == before);
      REQUIRE(recorded.is_null());
      // The original's groups keep what they got before one failed.
      for (GroupId group = 0; group < cache_.num_groups(); ++group) {
        if (!cache_.allocator(group).allocate_blocks(request, num_blocks)) {
          break;
        }
      }
      return nullptr;
    }
    return *granted;
  }

  json search(const json& args, const json& recorded) {
    const RequestId request = id(args.at("rid"));
    const auto tokens = args.at("prompt_ids").get<std::vector<TokenId>>();
    if (tokens.empty() || recorded != tokens.size()) {
      return cache_.search_prefix_match(request, tokens).value();
    }
    // The original took the whole prompt. Ours leaves the last block out, so that something is left to compute.
    REQUIRE(cache_.search_prefix_match(request, tokens) ==
            recorded.get<std::int32_t>() - cache_.manager().block_size());
    cache_.free_blocks(request);
    const std::vector<BlockHash> hashes = cache_.manager().compute_hashes(tokens, 0);
    std::vector<BlockId> found = cache_.manager().acquire_prefix(hashes, tokens, 0);
    const auto num_tokens = static_cast<std::int32_t>(found.size()) * cache_.manager().block_size();
    REQUIRE(cache_.allocator(0).adopt_blocks(request, std::move(found)).has_value());
    return num_tokens;
  }

  json fork(const json& args) {
    std::vector<RequestId> destinations;
    for (const json& name : args.at("destinations")) {
      destinations.push_back(id(name));
    }
    const auto copies = cache_.fork_request(id(args.at("source")), destinations);
    if (!copies) {
      return copies.error().message;
    }
    json sources = json::array();
    json targets = json::array();
    for (const std::vector<BlockCopy>& group : *copies) {
      for (const BlockCopy& copy : group) {
        sources.push_back(copy.source);
        targets.push_back(copy.destination);
      }
    }
    return {sources, targets};
  }

  /// `seqlens_k` is recorded by attention type, ours is by group.
  json indices(const json& args, const json& recorded) {
    const RequestId request = id(args.at("rid"));
    const std::int32_t past = args.at("past_length");
    const std::int32_t query = args.at("query_length");
    json seqlens = json::array();
    for (const json& entry : recorded.at("seqlens_k")) {
      for (GroupId group = 0; group < cache_.num_groups(); ++group) {
        const bool sliding = cache_.allocator(group).layers().type == AttentionType::sliding;
        if (entry.at(0) == (sliding ? "sliding_attention" : "full_attention")) {
          seqlens.push_back({entry.at(0), cache_.get_seqlens_k(past, query).at(static_cast<std::size_t>(group))});
          break;
        }
      }
    }
    return {{"read", cache_.get_read_indices(request, past, query).value()},
            {"write", cache_.get_write_indices(request, past, query).value()},
            {"seqlens_k", seqlens}};
  }

  PagedAttentionCache cache_;
  GoldenHashes hashes_;
  std::unordered_map<std::string, RequestId> ids_;
  std::unordered_map<RequestId, std::string> names_;
};

json expected_result(const json& operation) {
  json expected = operation.at("res");
  if (operation.contains("correct")) {
    expected.update(operation.at("correct"));
  }
  return expected;
}

/// The original leaves an empty table behind where a first allocation fails or a search finds nothing.
json expected_state(const json& recorded) {
  json state = without_stale_records(recorded);
  state["tables"] = json::array();
  for (const json& tables : recorded.at("tables")) {
    json kept = json::object();
    for (const auto& [request, table] : tables.items()) {
      if (!table.empty()) {
        kept[request] = table;
      }
    }
    state["tables"].push_back(kept);
  }
  return state;
}

}  // namespace

TEST_CASE("paged attention cache gives the results and states that the original recorded", "[golden]") {
  int num_compared = 0;
  for (const GoldenTrace& trace : read_golden_traces("cache.jsonl.gz")) {
    Replay replay(trace);
    for (const json& operation : trace.operations) {
      INFO(trace.name << " " << operation.at("i") << " " << operation.at("op") << " " << operation.at("args"));
      const json result = replay.run(operation);
      REQUIRE(result == expected_result(operation));
      REQUIRE(replay.state() == expected_state(operation.at("state")));
      const Result<void> invariants = replay.check_invariants();
      INFO((invariants ? "" : invariants.error().message));
      REQUIRE(invariants.has_value());
      ++num_compared;
    }
  }
  WARN("compared " << num_compared << " operations");
  REQUIRE(num_compared == kComparedOperations);
}

}  // namespace troupe::test

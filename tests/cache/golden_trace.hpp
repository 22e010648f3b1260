#pragma once

/// Reads recorded traces of transformers 5.0.0rc2 and shows our state the way they show theirs.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/block.hpp"
#include "cache/block_hash.hpp"

namespace troupe::test {

/// One recorded run: operations that precede the first one after which the original's state is corrupt.
struct GoldenTrace {
  std::string name;
  nlohmann::json header;
  std::vector<nlohmann::json> operations;
};

/// Reads tests/golden/<file>, gzipped JSON lines. Throws std::runtime_error if it cannot be read.
std::vector<GoldenTrace> read_golden_traces(const std::string& file);

/// Names of the hashes that a trace has defined so far ("h0", "h1", ...).
class GoldenHashes {
 public:
  /// Takes an operation's `new_hashes`.
  void define(const nlohmann::json& operation);
  /// The name of a hash; "?" if the trace has not defined it.
  [[nodiscard]] std::string name(const BlockHash& hash) const;

 private:
  std::unordered_map<std::string, BlockHash> hashes_;
  std::unordered_map<BlockHash, std::string, BlockHashHasher> names_;
};

/// Our state in the form of a trace's `state`, without `tables`.
nlohmann::json to_golden_state(const BlockManagerSnapshot& snapshot, const GoldenHashes& hashes);

/// A recorded `state`, without `tables` and without the records that the original keeps of evicted blocks.
nlohmann::json without_stale_records(const nlohmann::json& state);

}  // namespace troupe::test

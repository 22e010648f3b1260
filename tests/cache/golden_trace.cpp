#include "tests/cache/golden_trace.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <zlib.h>

namespace troupe::test {
namespace {

using nlohmann::json;

std::string read_gzip(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) {
    throw std::runtime_error(path + ": cannot be opened");
  }
  std::string text;
  std::array<char, 1 << 16> chunk{};
  int num_read = 0;
  while ((num_read = gzread(file.get(), chunk.data(), chunk.size())) > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(num_read));
  }
  if (num_read < 0 || text.empty()) {
    throw std::runtime_error(path + ": cannot be decompressed");
  }
  return text;
}

/// Index of the first operation that cannot be compared.
std::int64_t comparison_end(const json& header) {
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  if (header.at("first_violation_op").is_number()) {
    end = std::min(end, header.at("first_violation_op").get<std::int64_t>());
  }
  if (header.at("first_exception").is_array()) {
    end = std::min(end, header.at("first_exception").at(0).get<std::int64_t>());
  }
  return end;
}

}  // namespace

std::vector<GoldenTrace> read_golden_traces(const std::string& file) {
  std::vector<GoldenTrace> traces;
  std::istringstream lines(read_gzip(std::string(TROUPE_TEST_DATA) + "/" + file));
  for (std::string line; std::getline(lines, line);) {
    json entry = json::parse(line);
    if (entry.contains("header")) {
      traces.push_back(GoldenTrace{.name = entry.at("trace"), .header = entry.at("header"), .operations = {}});
    } else if (entry.at("i").get<std::int64_t>() < comparison_end(traces.back().header)) {
      traces.back().operations.push_back(std::move(entry));
    }
  }
  return traces;
}

void GoldenHashes::define(const json& operation) {
  if (!operation.contains("new_hashes")) {
    return;
  }
  for (const json& definition : operation.at("new_hashes")) {
    const std::string name = definition.at(0);
    std::optional<BlockHash> parent;
    if (definition.at(1).is_string()) {
      parent = hashes_.at(definition.at(1));
    }
    const BlockHash hash = compute_block_hash(parent, definition.at(2).get<std::vector<TokenId>>(), definition.at(3));
    hashes_.emplace(name, hash);
    names_.emplace(hash, name);
  }
}

std::string GoldenHashes::name(const BlockHash& hash) const {
  const auto found = names_.find(hash);
  return found == names_.end() ? "?" : found->second;
}

json to_golden_state(const BlockManagerSnapshot& snapshot, const GoldenHashes& hashes) {
  json state = {{"uninit", snapshot.uninitialized}, {"init", snapshot.initialized}};
  state["h2id"] = json::object();
  for (const auto& [hash, id] : snapshot.hash_to_block) {
    state["h2id"][hashes.name(hash)] = id;
  }
  state["blocks"] = json::object();
  for (const Block& block : snapshot.blocks) {
    if (block.shareable && block.state != BlockState::uninitialized) {
      state["blocks"][std::to_string(block.id)] = {block.parent ? json(*block.parent) : json(), block.group,
                                                   block.hash ? json(hashes.name(*block.hash)) : json(),
                                                   block.ref_count};
    }
  }
  return state;
}

json without_stale_records(const json& recorded) {
  json state = {{"uninit", recorded.at("uninit")}, {"init", recorded.at("init")}};
  state["h2id"] = json::object();
  for (const json& entry : recorded.at("h2id")) {
    state["h2id"][entry.at(0).get<std::string>()] = entry.at(1);
  }
  state["blocks"] = json::object();
  for (const auto& [id, record] : recorded.at("blocks").items()) {
    const bool is_initialized =
        std::ranges::find(recorded.at("init"), json(std::stoi(id))) != recorded.at("init").end();
    if (is_initialized || record.at(3) != 0) {
      state["blocks"][id] = record;
    }
  }
  return state;
}

}  // namespace troupe::test

#pragma once

/// Recorded generations of real models, and where the models are.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/types.hpp"
#include "tests/support/catch.hpp"

namespace troupe::test {

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(TROUPE_TEST_DATA) / name;
}

struct GoldenPrompt {
  std::vector<TokenId> prompt_ids;
  std::vector<TokenId> greedy;
  /// Log-probabilities of the greedy tokens.
  std::vector<float> logprobs;
};

/// Reads an `expected.json`: an object with the prompts under "items".
inline std::vector<GoldenPrompt> read_golden_prompts(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  const nlohmann::json document = nlohmann::json::parse(file);
  std::vector<GoldenPrompt> prompts;
  for (const nlohmann::json& item : document.at("items")) {
    prompts.push_back({.prompt_ids = item.at(item.contains("prompt_ids") ? "prompt_ids" : "prompt"),
                       .greedy = item.at("greedy"),
                       .logprobs = item.at("logprobs")});
  }
  return prompts;
}

/// The SmolLM2 model that scripts/setup fetches; nothing, and a warning in the test's output, if it is not there.
inline std::optional<std::filesystem::path> smollm2_path() {
  const char* cache = std::getenv("TROUPE_CACHE");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root = cache != nullptr
                                         ? std::filesystem::path(cache)
                                         : std::filesystem::path(home != nullptr ? home : "") / ".cache/troupe";
  std::filesystem::path path = root / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) {
    WARN("SKIPPED: " << path << " is not there; scripts/setup fetches it");
    return std::nullopt;
  }
  return path;
}

}  // namespace troupe::test

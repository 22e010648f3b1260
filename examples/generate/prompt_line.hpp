#pragma once

/// A line of the input: what is asked and with which parameters.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/error.hpp"
#include "cache/types.hpp"

namespace troupe::generate {

/// Parameters of a request that may be left open.
struct PromptParameters {
  std::optional<std::int32_t> max_new_tokens;
  std::optional<float> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::uint64_t> seed;
  std::optional<bool> ignore_eos;
  std::optional<std::vector<TokenId>> eos_token_ids;
  std::optional<bool> prefix_sharing;
  std::optional<bool> logprobs;
};

/// `given`, with what it leaves open taken from `defaults`.
[[nodiscard]] PromptParameters with_defaults(PromptParameters given, const PromptParameters& defaults);

struct PromptLine {
  /// Empty if the line has none.
  std::string id;
  // Exactly one of these is set.
  std::optional<std::string> prompt;
  std::optional<std::vector<TokenId>> prompt_ids;
  std::optional<nlohmann::ordered_json> messages;
  PromptParameters parameters;
};

/// Parses a JSON line. Ranges that depend on the model are left to the engine. A null field counts as absent. Errors
/// name the field, what was expected and what was found; `id`, if given, gets the line's id even then.
[[nodiscard]] Result<PromptLine> parse_prompt_line(std::string_view line, std::string* id = nullptr);

}  // namespace troupe::generate

#include "examples/generate/prompt_line.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "model/json_file.hpp"

namespace troupe::generate {

namespace {

using Json = nlohmann::ordered_json;

/// The value as it stands in the line, shortened.
std::string show(const Json& value) {
  constexpr std::size_t kMaxShown = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kMaxShown ? text.substr(0, kMaxShown) + "..." : text;
}

tl::unexpected<Error> wrong(std::string_view field, std::string_view expected, const Json& found) {
  return fail(ErrorCode::invalid_request,
              std::string(field) + ": expected " + std::string(expected) + ", found " + show(found));
}

Result<std::string> read(std::string_view field, const Json& value, std::string /*type*/) {
  if (!value.is_string()) {
    return wrong(field, "a string", value);
  }
  return value.get<std::string>();
}

Result<bool> read(std::string_view field, const Json& value, bool /*type*/) {
  if (!value.is_boolean()) {
    return wrong(field, "true or false", value);
  }
  return value.get<bool>();
}

Result<std::int32_t> read(std::string_view field, const Json& value, std::int32_t /*type*/) {
  using Limits = std::numeric_limits<std::int32_t>;
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(Limits::max())
                        : value.is_number_integer() && value.get<std::int64_t>() >= Limits::min();
  if (!fits) {
    return wrong(field, "an integer of at most " + std::to_string(Limits::max()), value);
  }
  return value.get<std::int32_t>();
}

Result<std::uint64_t> read(std::string_view field, const Json& value, std::uint64_t /*type*/) {
  if (!value.is_number_unsigned()) {
    return wrong(field, "an integer in [0, 2^64)", value);
  }
  return value.get<std::uint64_t>();
}

Result<float> read(std::string_view field, const Json& value, float /*type*/) {
  if (!value.is_number() || !std::isfinite(value.get<float>())) {
    return wrong(field, "a finite number", value);
  }
  return value.get<float>();
}

Result<std::vector<TokenId>> read(std::string_view field, const Json& value, std::vector<TokenId> /*type*/) {
  if (!value.is_array()) {
    return wrong(field, "an array of token ids", value);
  }
  std::vector<TokenId> ids;
  ids.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    Result<TokenId> id = read(std::string(field) + "[" + std::to_string(i) + "]", value[i], TokenId{});
    if (!id) {
      return tl::unexpected(std::move(id.error()));
    }
    ids.push_back(*id);
  }
  return ids;
}

Result<Json> read(std::string_view field, const Json& value, Json /*type*/) {
  if (!value.is_array() || value.empty()) {
    return wrong(field, "an array of messages that is not empty", value);
  }
  for (const Json& message : value) {
    if (!message.is_object() || !message.contains("role") || !message.at("role").is_string()) {
      return wrong(field, R"(objects with a "role" and a "content")", message);
    }
  }
  return value;
}

template <class T>
Result<void> assign(std::string_view field, const Json& value, std::optional<T>& target) {
  return read(field, value, T{}).map([&target](T given) { target = std::move(given); });
}

Result<void> assign_id(const Json& value, std::string& id) {
  if (value.is_number_integer()) {
    id = value.dump();
    return {};
  }
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    return wrong("id", "a string that is not empty, or an integer", value);
  }
  id = value.get<std::string>();
  return {};
}

Result<void> assign_field(const std::string& field, const Json& value, PromptLine& line) {
  PromptParameters& parameters = line.parameters;
  if (value.is_null()) {
    return {};
  }
  if (field == "id") {
    return assign_id(value, line.id);
  }
  if (field == "prompt") {
    return assign(field, value, line.prompt);
  }
  if (field == "prompt_ids") {
    return assign(field, value, line.prompt_ids);
  }
  if (field == "messages") {
    return assign(field, value, line.messages);
  }
  if (field == "max_new_tokens") {
    return assign(field, value, parameters.max_new_tokens);
  }
  if (field == "temperature") {
    return assign(field, value, parameters.temperature);
  }
  if (field == "top_k") {
    return assign(field, value, parameters.top_k);
  }
  if (field == "top_p") {
    return assign(field, value, parameters.top_p);
  }
  if (field == "min_p") {
    return assign(field, value, parameters.min_p);
  }
  if (field == "seed") {
    return assign(field, value, parameters.seed);
  }
  if (field == "ignore_eos") {
    return assign(field, value, parameters.ignore_eos);
  }
  if (field == "eos_token_ids") {
    return assign(field, value, parameters.eos_token_ids);
  }
  if (field == "prefix_sharing") {
    return assign(field, value, parameters.prefix_sharing);
  }
  if (field == "logprobs") {
    return assign(field, value, parameters.logprobs);
  }
  return fail(ErrorCode::invalid_request, "unknown field \"" + field + "\" (--help lists those there are)");
}

}  // namespace

PromptParameters with_defaults(PromptParameters given, const PromptParameters& defaults) {
  const auto fill = [](auto& field, const auto& fallback) {
    if (!field) {
      field = fallback;
    }
  };
  fill(given.max_new_tokens, defaults.max_new_tokens);
  fill(given.temperature, defaults.temperature);
  fill(given.top_k, defaults.top_k);
  fill(given.top_p, defaults.top_p);
  fill(given.min_p, defaults.min_p);
  fill(given.seed, defaults.seed);
  fill(given.ignore_eos, defaults.ignore_eos);
  fill(given.eos_token_ids, defaults.eos_token_ids);
  fill(given.prefix_sharing, defaults.prefix_sharing);
  fill(given.logprobs, defaults.logprobs);
  return given;
}

Result<PromptLine> parse_prompt_line(std::string_view text, std::string* id) {
  // Finds what the parser below lets pass: nesting without end, a key that occurs twice.
  if (const auto checked = parse_json(text); !checked) {
    return fail(ErrorCode::invalid_request, "line: " + checked.error().message);
  }
  // Messages keep the order of their keys, which a chat template may print.
  const Json document = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) {
    return wrong("line", "a JSON object", document);
  }
  PromptLine line;
  // The id first, so that whatever is wrong with the rest can be told under it.
  if (document.contains("id") && !document.at("id").is_null()) {
    if (Result<void> assigned = assign_id(document.at("id"), line.id); !assigned) {
      return tl::unexpected(std::move(assigned.error()));
    }
    if (id != nullptr) {
      *id = line.id;
    }
  }
  for (const auto& [field, value] : document.items()) {
    if (Result<void> assigned = assign_field(field, value, line); !assigned) {
      return tl::unexpected(std::move(assigned.error()));
    }
  }
  const int num_prompts = (line.prompt ? 1 : 0) + (line.prompt_ids ? 1 : 0) + (line.messages ? 1 : 0);
  if (num_prompts != 1) {
    return fail(ErrorCode::invalid_request,
                "expected one of prompt, prompt_ids and messages, found " + std::to_string(num_prompts) + " of them");
  }
  return line;
}

}  // namespace troupe::generate

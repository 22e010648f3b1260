#include "model/chat_template_source.hpp"

#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "model/gguf_metadata.hpp"
#include "model/json_file.hpp"
#include "model/json_node.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMaxTemplateBytes = std::size_t{4} << 20U;

/// A string, or a list of `{"name", "template"}`.
std::optional<std::string> find_default(const JsonNode& node) {
  if (node.is_null()) {
    return std::nullopt;
  }
  if (!node.is_array()) {
    return node.string();
  }
  std::optional<std::string> found;
  for (const JsonNode& element : node.elements()) {
    std::string source = element["template"].string();
    if (element["name"].string() == "default") {
      found = std::move(source);
    }
  }
  return found;
}

}  // namespace

Result<std::optional<std::string>> read_chat_template(const std::filesystem::path& directory) {
  if (const auto path = directory / "chat_template.jinja"; is_present(path)) {
    return read_text_file(path, kMaxTemplateBytes).map([](std::string source) { return std::optional(source); });
  }
  const auto path = directory / "tokenizer_config.json";
  if (!is_present(path)) {
    return std::nullopt;
  }
  const Result<nlohmann::json> document = read_json_file(path);
  if (!document) {
    return tl::unexpected(document.error());
  }
  JsonProblem problem;
  std::optional<std::string> source = find_default(JsonNode(*document, "", problem)["chat_template"]);
  if (problem.error) {
    return fail_in_file(path, *problem.error);
  }
  return source;
}

Result<std::optional<std::string>> read_chat_template(const GgufFile& file) {
  GgufMetadata metadata(file);
  std::optional<std::string> source = metadata.string("tokenizer.chat_template");
  if (metadata.problem()) {
    return tl::unexpected(*metadata.problem());
  }
  return source;
}

}  // namespace troupe

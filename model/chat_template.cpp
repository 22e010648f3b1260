#include "model/chat_template.hpp"

#include <unordered_map>
#include <utility>

#include "model/jinja/interpreter.hpp"
#include "model/jinja/json.hpp"
#include "model/jinja/parser.hpp"
#include "model/jinja/runtime.hpp"

namespace troupe {
namespace {

tl::unexpected<Error> fail(ErrorCode code, const jinja::Fault& fault) {
  const std::string place = fault.line == 0 || fault.raised ? "" : ", line " + std::to_string(fault.line);
  return troupe::fail(code, "chat template" + place + ": " + fault.message);
}

/// Checks what the engine itself asks of the caller's input, before the template sees it.
Result<void> check_input(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& variables) {
  if (!messages.is_array()) {
    return troupe::fail(ErrorCode::invalid_request,
                        std::string("messages: expected an array, found ") + messages.type_name());
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      return troupe::fail(ErrorCode::invalid_request,
                          "messages[" + std::to_string(i) + "]: expected an object, found " + messages[i].type_name());
    }
  }
  if (!variables.is_null() && !variables.is_object()) {
    return troupe::fail(
        ErrorCode::invalid_request,
        std::string("variables of the chat template: expected an object, found ") + variables.type_name());
  }
  return {};
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  auto program = jinja::parse(source);
  if (!program) {
    return fail(ErrorCode::malformed_file, program.error());
  }
  return ChatTemplate(std::move(*program));
}

Result<std::string> ChatTemplate::render(const nlohmann::ordered_json& messages, const RenderOptions& options) const {
  if (auto valid = check_input(messages, options.variables); !valid) {
    return tl::unexpected(valid.error());
  }
  // Hugging Face passes null for tools and documents that are not given.
  std::unordered_map<std::string, jinja::Value> variables = {{"tools", jinja::None{}}, {"documents", jinja::None{}}};
  nlohmann::ordered_json tokens = {{"bos_token", options.bos_token}, {"eos_token", options.eos_token}};
  const auto add = [&variables](const std::string& name, const nlohmann::ordered_json& json) -> Result<void> {
    auto value = jinja::value_from_json(json);
    if (!value) {
      return fail(ErrorCode::invalid_request, jinja::Fault{name + ": " + value.error().message});
    }
    variables.insert_or_assign(name, std::move(*value));
    return {};
  };
  for (const auto* const object : {&std::as_const(tokens), &options.variables}) {
    for (const auto& [name, json] : object->items()) {
      if (auto added = add(name, json); !added) {
        return tl::unexpected(added.error());
      }
    }
  }
  if (auto added = add("messages", messages); !added) {
    return tl::unexpected(added.error());
  }
  variables.insert_or_assign("add_generation_prompt", jinja::Value(options.add_generation_prompt));

  jinja::Runtime runtime(options.now.value_or(std::chrono::system_clock::now()));
  auto text = jinja::Interpreter(*program_, runtime).render(variables);
  if (!text) {
    return fail(ErrorCode::invalid_request, text.error());
  }
  return std::move(*text);
}

}  // namespace troupe

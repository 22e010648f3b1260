#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "cache/error.hpp"

namespace troupe {

namespace jinja {
struct Program;
}

/// A Jinja chat template as Hugging Face tokenizers carry it (trim_blocks and lstrip_blocks on). It never changes:
/// copies are cheap, and several threads may render it at the same time. What a render may cost is bounded
/// (jinja/limits.hpp).
class ChatTemplate {
 public:
  /// Error `malformed_file`: line, what was expected and what was found.
  [[nodiscard]] static Result<ChatTemplate> parse(std::string_view source);

  struct RenderOptions {
    bool add_generation_prompt = true;
    std::string bos_token;
    std::string eos_token;
    /// Further variables ("tools", "documents", ...); an object, or null for none.
    nlohmann::ordered_json variables;
    /// The time that templates ask for; the present if not given.
    std::optional<std::chrono::system_clock::time_point> now = std::nullopt;
  };

  /// Error `invalid_request`: what the template raises, in its words, or where and why it cannot go on with these
  /// messages.
  /// @param messages An array of `{"role", "content", ...}` objects.
  [[nodiscard]] Result<std::string> render(const nlohmann::ordered_json& messages, const RenderOptions& options) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const jinja::Program> program_;
};

}  // namespace troupe

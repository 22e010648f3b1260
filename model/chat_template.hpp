#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cache/error.hpp"

namespace troupe {

/// A Jinja chat template as Hugging Face tokenizers carry it (trim_blocks and lstrip_blocks on).
class ChatTemplate {
 public:
  /// Errors name line and what was expected.
  [[nodiscard]] static Result<ChatTemplate> parse(std::string_view source);

  struct RenderOptions {
    bool add_generation_prompt = true;
    std::string bos_token;
    std::string eos_token;
    /// Further variables ("tools", "documents", ...); an object.
    nlohmann::ordered_json variables;
  };

  /// @param messages An array of `{"role", "content", ...}` objects.
  [[nodiscard]] Result<std::string> render(const nlohmann::ordered_json& messages, const RenderOptions& options) const;
};

}  // namespace troupe

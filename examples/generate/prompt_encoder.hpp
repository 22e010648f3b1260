#pragma once

#include <cstddef>
#include <optional>

#include "actors/request.hpp"
#include "examples/generate/options.hpp"
#include "model/chat_template.hpp"
#include "model/model_files.hpp"

namespace troupe::generate {

/// Turns lines into requests: renders the chat template, tokenizes, fills in parameters.
class PromptEncoder {
 public:
  /// `files` outlives the encoder. Errors: `--chat` without a chat template, or one that cannot be parsed.
  [[nodiscard]] static Result<PromptEncoder> make(const ModelFiles& files, const Options& options);

  /// Parameters come from the line, then from the options, then from the model's generation_config.json.
  /// @param number The line's number, from 1; its seed is that of the options plus number - 1.
  [[nodiscard]] Result<Request> encode(PromptLine line, std::size_t number) const;

 private:
  PromptEncoder(const ModelFiles& files, const Options& options) : files_(&files), options_(&options) {}

  [[nodiscard]] Result<std::vector<TokenId>> encode_prompt(PromptLine& line) const;
  [[nodiscard]] Result<std::vector<TokenId>> encode_messages(const nlohmann::ordered_json& messages) const;

  const ModelFiles* files_;
  const Options* options_;
  std::optional<ChatTemplate> chat_template_;
};

}  // namespace troupe::generate

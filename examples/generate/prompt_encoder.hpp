#pragma once

#include <cstddef>
#include <utility>

#include "actors/request.hpp"
#include "examples/generate/options.hpp"
#include "model/chat_template.hpp"
#include "model/model_files.hpp"

namespace troupe::generate {

/// Turns lines into requests: renders the chat template, tokenizes, fills in parameters.
class PromptEncoder {
 public:
  /// Both arguments outlive the encoder. Errors: `--chat` without a tokenizer, or without a chat template that can be
  /// parsed. Without `--chat`, that is an error of the lines that have messages.
  [[nodiscard]] static Result<PromptEncoder> make(const ModelFiles& files, const Options& options);

  /// Parameters come from the line, then from the options, then from the model's generation_config.json.
  /// @param number The line's number, from 1; its seed is that of the options plus number - 1.
  [[nodiscard]] Result<Request> encode(PromptLine line, std::size_t number) const;

 private:
  PromptEncoder(const ModelFiles& files, const Options& options, Result<ChatTemplate> chat_template)
      : files_(&files), options_(&options), chat_template_(std::move(chat_template)) {}

  [[nodiscard]] Result<std::vector<TokenId>> encode_prompt(PromptLine& line) const;
  [[nodiscard]] Result<std::vector<TokenId>> encode_messages(const nlohmann::ordered_json& messages) const;

  const ModelFiles* files_;
  const Options* options_;
  Result<ChatTemplate> chat_template_;
};

}  // namespace troupe::generate

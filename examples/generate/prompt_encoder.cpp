#include "examples/generate/prompt_encoder.hpp"

#include <utility>

namespace troupe::generate {

Result<PromptEncoder> PromptEncoder::make(const ModelFiles& files, const Options& options) {
  PromptEncoder encoder(files, options);
  if (files.chat_template) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(*files.chat_template);
    if (parsed) {
      encoder.chat_template_ = std::move(*parsed);
    } else if (options.chat) {
      return fail(parsed.error().code, files.path.string() + ": chat template: " + parsed.error().message);
    }
  }
  if (options.chat && (!encoder.chat_template_ || files.tokenizer == nullptr)) {
    return fail(ErrorCode::unsupported, files.path.string() +
                                            ": --chat needs a tokenizer and a chat template, the model " +
                                            (files.tokenizer == nullptr ? "has no tokenizer" : "has no chat template"));
  }
  return encoder;
}

Result<Request> PromptEncoder::encode(PromptLine line, std::size_t number) const {
  Request request;
  Result<std::vector<TokenId>> ids = encode_prompt(line);
  if (!ids) {
    return tl::unexpected(std::move(ids.error()));
  }
  request.id = line.id;
  request.prompt_ids = std::move(*ids);

  const bool has_seed = line.parameters.seed.has_value();
  const PromptParameters given = with_defaults(std::move(line.parameters), options_->defaults);
  const GenerationDefaults& model = files_->generation;
  const bool model_samples = model.do_sample.value_or(false);
  SamplingParams& sampling = request.sampling;
  sampling.temperature = given.temperature.value_or(model_samples ? model.temperature.value_or(1.0F) : 0.0F);
  sampling.top_k = given.top_k.value_or(model_samples ? model.top_k.value_or(0) : 0);
  sampling.top_p = given.top_p.value_or(model_samples ? model.top_p.value_or(1.0F) : 1.0F);
  sampling.min_p = given.min_p.value_or(model_samples ? model.min_p.value_or(0.0F) : 0.0F);
  sampling.seed = given.seed.value_or(0) + (has_seed ? 0 : number - 1);
  sampling.return_logprobs = given.logprobs.value_or(false);
  request.max_new_tokens = given.max_new_tokens ? given.max_new_tokens : model.max_new_tokens;
  request.eos_token_ids = given.eos_token_ids;
  request.ignore_eos = given.ignore_eos.value_or(false);
  request.prefix_sharing = given.prefix_sharing.value_or(true);
  request.streaming = options_->stream;
  return request;
}

Result<std::vector<TokenId>> PromptEncoder::encode_prompt(PromptLine& line) const {
  if (line.prompt_ids) {
    return std::move(*line.prompt_ids);
  }
  if (files_->tokenizer == nullptr) {
    return fail(ErrorCode::unsupported, files_->path.string() + " has no tokenizer: only prompt_ids can be answered");
  }
  if (line.messages) {
    return encode_messages(*line.messages);
  }
  if (options_->chat) {
    return encode_messages(nlohmann::ordered_json::array({{{"role", "user"}, {"content", *line.prompt}}}));
  }
  return files_->tokenizer->encode(*line.prompt, /*add_special_tokens=*/true);
}

Result<std::vector<TokenId>> PromptEncoder::encode_messages(const nlohmann::ordered_json& messages) const {
  if (!chat_template_) {
    return fail(ErrorCode::unsupported, "messages: " + files_->path.string() + " has no chat template");
  }
  const Tokenizer& tokenizer = *files_->tokenizer;
  const auto spelling = [&tokenizer](std::optional<TokenId> id) {
    return id ? tokenizer.id_to_token(*id) : std::string();
  };
  ChatTemplate::RenderOptions render;
  render.bos_token = spelling(tokenizer.bos_token_id());
  render.eos_token = spelling(tokenizer.eos_token_id());
  Result<std::string> text = chat_template_->render(messages, render);
  if (!text) {
    return fail(ErrorCode::invalid_request, "messages: " + text.error().message);
  }
  return tokenizer.encode(*text, /*add_special_tokens=*/false);
}

}  // namespace troupe::generate

#include "examples/generate/prompt_encoder.hpp"

#include <utility>

namespace troupe::generate {

namespace {

Result<ChatTemplate> parse_chat_template(const ModelFiles& files) {
  if (!files.chat_template) {
    return fail(ErrorCode::unsupported, files.path.string() + " has no chat template");
  }
  return ChatTemplate::parse(*files.chat_template).map_error([&](const Error& error) {
    return Error{error.code, files.path.string() + ": chat template: " + error.message};
  });
}

}  // namespace

Result<PromptEncoder> PromptEncoder::make(const ModelFiles& files, const Options& options) {
  Result<ChatTemplate> chat_template = parse_chat_template(files);
  if (options.chat && files.tokenizer == nullptr) {
    return fail(ErrorCode::unsupported, "--chat: " + files.path.string() + " has no tokenizer");
  }
  if (options.chat && !chat_template) {
    return fail(chat_template.error().code, "--chat: " + chat_template.error().message);
  }
  return PromptEncoder(files, options, std::move(chat_template));
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
  Result<std::vector<TokenId>> ids = files_->tokenizer->encode(*line.prompt, /*add_special_tokens=*/true);
  if (ids && ids->empty()) {
    return fail(ErrorCode::invalid_request, "prompt: expected a text of at least 1 token, found none");
  }
  return ids;
}

Result<std::vector<TokenId>> PromptEncoder::encode_messages(const nlohmann::ordered_json& messages) const {
  if (!chat_template_) {
    return fail(chat_template_.error().code, "messages: " + chat_template_.error().message);
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

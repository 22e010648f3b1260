#include "model/detokenizer.hpp"

namespace troupe {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer),
      skip_special_tokens_(skip_special_tokens),
      decoder_(tokenizer.make_decoder(skip_special_tokens)) {}

std::string Detokenizer::push(std::span<const TokenId> ids) { return decoder_->push(ids); }

std::string Detokenizer::finish() {
  std::string text = decoder_->finish();
  decoder_ = tokenizer_->make_decoder(skip_special_tokens_);
  return text;
}

}  // namespace troupe

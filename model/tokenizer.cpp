#include "model/tokenizer.hpp"

#include "model/utf8.hpp"

namespace troupe {
namespace {

class ByteDecoder : public TokenDecoder {
 public:
  ByteDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
      : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}

  std::string push(std::span<const TokenId> ids) override {
    std::string text;
    for (const TokenId id : ids) {
      if (!(skip_special_tokens_ && tokenizer_.is_special(id))) {
        stream_.push(tokenizer_.token_bytes(id), text);
      }
    }
    return text;
  }

  std::string finish() override {
    std::string text;
    stream_.finish(text);
    return text;
  }

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  Utf8Stream stream_;
};

}  // namespace

std::unique_ptr<TokenDecoder> Tokenizer::make_decoder(bool skip_special_tokens) const {
  return std::make_unique<ByteDecoder>(*this, skip_special_tokens);
}

}  // namespace troupe

#include "model/bpe_tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "model/error_text.hpp"
#include "model/utf8.hpp"

namespace troupe {

class BpeTokenizer::Decoder : public TokenDecoder {
 public:
  Decoder(const BpeTokenizer& tokenizer, bool skip_special_tokens)
      : tokenizer_(tokenizer),
        skip_special_tokens_(skip_special_tokens),
        chain_(make_decode_chain(tokenizer.parts_.decoder, text_)) {}

  std::string push(std::span<const TokenId> ids) override {
    for (const TokenId id : ids) {
      const Token* token = tokenizer_.find(id);
      if (token != nullptr && !(skip_special_tokens_ && token->special)) {
        chain_->push(token->spelling);
      }
    }
    return std::exchange(text_, {});
  }

  std::string finish() override {
    chain_->finish();
    return std::exchange(text_, {});
  }

 private:
  const BpeTokenizer& tokenizer_;
  bool skip_special_tokens_;
  std::string text_;
  std::unique_ptr<DecodeStage> chain_;
};

BpeTokenizer::BpeTokenizer(BpeTokenizerParts parts)
    : parts_(std::move(parts)), bpe_(parts_.vocabulary, parts_.merges, parts_.options) {
  parts_.merges = {};
}

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::make(BpeTokenizerParts parts) {
  std::unique_ptr<BpeTokenizer> tokenizer(new BpeTokenizer(std::move(parts)));
  for (auto fill : {&BpeTokenizer::fill_tokens, &BpeTokenizer::fill_matchers}) {
    if (auto filled = (*tokenizer.*fill)(); !filled) {
      return tl::unexpected(std::move(filled).error());
    }
  }
  return tokenizer;
}

Result<void> BpeTokenizer::fill_tokens() {
  const Vocabulary& vocabulary = *parts_.vocabulary;
  const auto place = [&](TokenId id, const std::string& spelling) -> Token& {
    if (static_cast<std::size_t>(id) >= tokens_.size()) {
      tokens_.resize(static_cast<std::size_t>(id) + 1);
    }
    Token& token = tokens_[id];
    token.spelling = spelling;
    token.bytes = decode_token(parts_.decoder, spelling);
    token.known = true;
    return token;
  };
  tokens_.resize(vocabulary.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (const std::string* spelling = vocabulary.token(id)) {
      place(id, *spelling);
    }
  }
  for (std::size_t i = 0; i < parts_.added_tokens.size(); ++i) {
    const AddedToken& added = parts_.added_tokens[i];
    const auto refuse = [&](const std::string& message) {
      return fail(ErrorCode::malformed_file, "/added_tokens/" + std::to_string(i) + ": " + message);
    };
    const Token* there = find(added.id);
    if (there != nullptr && there->spelling != added.content) {
      return refuse("id " + std::to_string(added.id) + " belongs to both " + in_quotes(there->spelling) + " and " +
                    in_quotes(added.content));
    }
    const auto id = token_to_id(added.content);
    if (id && *id != added.id) {
      return refuse("token " + in_quotes(added.content) + " has two ids, " + std::to_string(*id) + " and " +
                    std::to_string(added.id));
    }
    place(added.id, added.content).special = added.special;
    added_ids_.try_emplace(added.content, added.id);
  }
  const auto gap = std::find_if(tokens_.begin(), tokens_.end(), [](const Token& token) { return !token.known; });
  if (gap != tokens_.end()) {
    return fail(ErrorCode::malformed_file, "/model/vocab: no token has id " + std::to_string(gap - tokens_.begin()) +
                                               ", but there are ids up to " + std::to_string(tokens_.size() - 1));
  }
  return {};
}

Result<void> BpeTokenizer::fill_matchers() {
  // Of two tokens with one spelling a special one wins.
  std::stable_partition(parts_.added_tokens.begin(), parts_.added_tokens.end(),
                        [](const AddedToken& token) { return token.special; });
  for (const AddedToken& token : parts_.added_tokens) {
    std::string spelling = token.content;
    if (token.normalized) {
      if (auto normalized = normalize(parts_.normalizers, spelling); !normalized) {
        return fail(ErrorCode::malformed_file,
                    "/added_tokens: " + in_quotes(token.content) + ": " + normalized.error().message);
      }
    }
    if (spelling.empty()) {
      continue;
    }
    (token.normalized ? normalized_matcher_ : raw_matcher_).add(spelling, token);
    // As in tokenizers, what is found is what is decoded.
    tokens_[token.id].bytes = decode_token(parts_.decoder, spelling);
    tokens_[token.id].spelling = std::move(spelling);
  }
  return {};
}

Result<std::vector<TokenId>> BpeTokenizer::encode(std::string_view text, bool add_special_tokens) const {
  if (text.size() > kMaxTextBytes) {
    return fail(ErrorCode::request_too_long, "text has " + std::to_string(text.size()) + " bytes, at most " +
                                                 std::to_string(kMaxTextBytes) + " can be tokenized");
  }
  if (const auto invalid = find_invalid_utf8(text)) {
    return fail(ErrorCode::invalid_request, "text is not valid UTF-8 at byte " + std::to_string(*invalid));
  }
  std::vector<TokenId> ids;
  if (add_special_tokens) {
    ids = parts_.prefix;
  }
  Bpe::Workspace workspace;
  for (const auto& segment : raw_matcher_.split(text)) {
    if (segment.token) {
      ids.push_back(*segment.token);
      continue;
    }
    std::string normalized(text.substr(segment.span.begin, segment.span.end - segment.span.begin));
    auto done = normalize(parts_.normalizers, normalized);
    if (done) {
      const bool at_start = segment.span.begin == 0;
      done = encode_normalized({.text = std::move(normalized), .pieces = {}, .at_start = at_start}, workspace, ids);
    }
    if (!done) {
      return tl::unexpected(std::move(done).error());
    }
  }
  if (add_special_tokens) {
    ids.insert(ids.end(), parts_.suffix.begin(), parts_.suffix.end());
  }
  return ids;
}

Result<void> BpeTokenizer::encode_normalized(PreTokenizedText text, Bpe::Workspace& workspace,
                                             std::vector<TokenId>& ids) const {
  for (const auto& segment : normalized_matcher_.split(text.text)) {
    if (segment.token) {
      ids.push_back(*segment.token);
      continue;
    }
    const std::size_t size = segment.span.end - segment.span.begin;
    PreTokenizedText part{.text = text.text.substr(segment.span.begin, size),
                          .pieces = {{.begin = 0, .end = size}},
                          .at_start = text.at_start && segment.span.begin == 0};
    if (auto done = pre_tokenize(parts_.pre_tokenizers, part); !done) {
      return done;
    }
    for (const TextSpan& piece : part.pieces) {
      bpe_.encode(std::string_view(part.text).substr(piece.begin, piece.end - piece.begin), workspace, ids);
    }
  }
  return {};
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  Decoder decoder(*this, skip_special_tokens);
  std::string text = decoder.push(ids);
  return text + decoder.finish();
}

std::unique_ptr<TokenDecoder> BpeTokenizer::make_decoder(bool skip_special_tokens) const {
  return std::make_unique<Decoder>(*this, skip_special_tokens);
}

const BpeTokenizer::Token* BpeTokenizer::find(TokenId id) const {
  const bool known = id >= 0 && static_cast<std::size_t>(id) < tokens_.size() && tokens_[id].known;
  return known ? &tokens_[id] : nullptr;
}

std::string_view BpeTokenizer::token_bytes(TokenId id) const {
  const Token* token = find(id);
  return token == nullptr ? std::string_view() : token->bytes;
}

bool BpeTokenizer::is_special(TokenId id) const {
  const Token* token = find(id);
  return token != nullptr && token->special;
}

std::int32_t BpeTokenizer::vocab_size() const { return static_cast<std::int32_t>(tokens_.size()); }

std::optional<TokenId> BpeTokenizer::token_to_id(std::string_view token) const {
  const auto added = added_ids_.find(std::string(token));
  return added == added_ids_.end() ? parts_.vocabulary->find(token) : std::optional(added->second);
}

std::string BpeTokenizer::id_to_token(TokenId id) const {
  const Token* token = find(id);
  return token == nullptr ? std::string() : token->spelling;
}

std::optional<TokenId> BpeTokenizer::bos_token_id() const { return parts_.bos_token_id; }
std::optional<TokenId> BpeTokenizer::eos_token_id() const { return parts_.eos_token_id; }

}  // namespace troupe

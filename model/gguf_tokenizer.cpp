#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/bpe_tokenizer.hpp"
#include "model/error_text.hpp"
#include "model/tokenizer_loader.hpp"
#include "model/unicode.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

/// Values of `tokenizer.ggml.token_type`.
enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

/// How the text before byte-level merges is cut; `tokenizer.ggml.pre` only names it. As the models' tokenizer.json has
/// it, but for "default", which llama.cpp made up.
struct ByteLevelScheme {
  std::string_view name;
  /// Patterns that split one after another, what lies between their matches being pieces, too; empty entries are none.
  std::array<std::string_view, 4> patterns;
  bool digits_one_by_one = false;
  bool nfc = false;
  bool ignore_merges = false;
};

constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array<ByteLevelScheme, 8> kSchemes = {{
    {.name = "default", .patterns = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {.name = "gpt-2", .patterns = {kGpt2Pattern}},
    {.name = "smollm", .patterns = {kGpt2Pattern}, .digits_one_by_one = true},
    {.name = "llama-bpe", .patterns = {kLlama3Pattern}, .ignore_merges = true},
    {.name = "llama3", .patterns = {kLlama3Pattern}, .ignore_merges = true},
    {.name = "llama-v3", .patterns = {kLlama3Pattern}, .ignore_merges = true},
    {.name = "qwen2", .patterns = {kQwen2Pattern}, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = {kQwen2Pattern}, .nfc = true},
}};

Result<const ByteLevelScheme*> find_scheme(std::string_view name) {
  std::string known;
  for (const ByteLevelScheme& scheme : kSchemes) {
    if (scheme.name == name) {
      return &scheme;
    }
    known += (known.empty() ? "" : ", ") + std::string(scheme.name);
  }
  if (name.empty()) {
    return fail(ErrorCode::unsupported, "tokenizer.ggml.pre: expected the name of a pre-tokenizer, one of " + known +
                                            ", found nothing: the file does not say how text is split");
  }
  return fail(ErrorCode::unsupported,
              "tokenizer.ggml.pre: pre-tokenizer " + in_quotes(name) + " is not supported; supported are " + known);
}

Result<std::shared_ptr<const Vocabulary>> make_vocabulary(std::vector<std::string> tokens) {
  Vocabulary vocabulary;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (find_invalid_utf8(tokens[id])) {
      return fail(ErrorCode::malformed_file, "tokenizer.ggml.tokens: number " + std::to_string(id) +
                                                 " is not valid UTF-8: " + in_quotes(tokens[id]));
    }
    if (Result<void> added = vocabulary.add(std::move(tokens[id]), static_cast<std::int64_t>(id)); !added) {
      return fail(added.error().code,
                  "tokenizer.ggml.tokens: number " + std::to_string(id) + ": " + added.error().message);
    }
  }
  return std::make_shared<const Vocabulary>(std::move(vocabulary));
}

/// Control and user-defined tokens are found in the text as they are.
std::vector<AddedToken> added_tokens(const GgufVocabulary& source, const Vocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < source.token_types.size(); ++id) {
    const std::int32_t type = source.token_types[id];
    if (type == kControl || type == kUserDefined || type == kUnknown) {
      added.push_back({.id = static_cast<TokenId>(id),
                       .content = *vocabulary.token(static_cast<TokenId>(id)),
                       .normalized = false,
                       .special = type != kUserDefined});
    }
  }
  return added;
}

Result<void> check(const GgufVocabulary& source) {
  if (!source.token_types.empty() && source.token_types.size() != source.tokens.size()) {
    return fail(ErrorCode::malformed_file,
                "tokenizer.ggml.token_type: expected " + std::to_string(source.tokens.size()) +
                    " values, one for each token, found " + std::to_string(source.token_types.size()));
  }
  for (const auto& [key, id] :
       {std::pair("bos_token_id", source.bos_token_id), std::pair("eos_token_id", source.eos_token_id),
        std::pair("unknown_token_id", source.unknown_token_id)}) {
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= source.tokens.size())) {
      return fail(ErrorCode::malformed_file, std::string("tokenizer.ggml.") + key + ": expected an id below " +
                                                 std::to_string(source.tokens.size()) + ", found " +
                                                 std::to_string(*id));
    }
  }
  return {};
}

Result<void> fill_byte_level(const GgufVocabulary& source, BpeTokenizerParts& parts) {
  const auto scheme = find_scheme(source.pre);
  if (!scheme) {
    return tl::unexpected(scheme.error());
  }
  if (source.merges.empty()) {
    return fail(ErrorCode::malformed_file, "tokenizer.ggml.merges: expected merges, found none");
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  pairs.reserve(source.merges.size());
  for (std::size_t i = 0; i < source.merges.size(); ++i) {
    const std::string& merge = source.merges[i];
    // A part may itself begin with a space only in files that are broken: the byte-level alphabet has none.
    const std::size_t space = merge.find(' ');
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) {
      return fail(ErrorCode::malformed_file, "tokenizer.ggml.merges: number " + std::to_string(i) +
                                                 ": expected two parts with one space between them, found " +
                                                 in_quotes(merge));
    }
    pairs.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  Result<std::vector<BpeMerge>> merges = ranked_merges(*parts.vocabulary, pairs);
  if (!merges) {
    return fail(merges.error().code, "tokenizer.ggml.merges: number " + merges.error().message);
  }
  parts.merges = std::move(*merges);
  parts.options.ignore_merges = (*scheme)->ignore_merges;
  if ((*scheme)->nfc) {
    parts.normalizers.push_back(unicode_normalizer(NormalizationForm::nfc));
  }
  if ((*scheme)->digits_one_by_one) {
    parts.pre_tokenizers.push_back(character_pre_tokenizer(is_numeric, SplitBehavior::isolated));
  }
  for (const std::string_view pattern : (*scheme)->patterns) {
    if (pattern.empty()) {
      continue;
    }
    Result<Regex> regex = Regex::compile(pattern);
    if (!regex) {
      return tl::unexpected(std::move(regex.error()));
    }
    parts.pre_tokenizers.push_back(split_pre_tokenizer(TextPattern(std::move(*regex)), {}));
  }
  parts.pre_tokenizers.push_back(byte_level_pre_tokenizer({.add_prefix_space = false, .split = nullptr}));
  parts.decoder.emplace_back(ByteLevelDecoder{});
  return {};
}

/// SentencePiece BPE as transformers' converter writes it for Llama 2: the space is U+2581, one is put in front, and
/// what the vocabulary lacks becomes bytes.
Result<void> fill_sentence_piece(const GgufVocabulary& source, BpeTokenizerParts& parts) {
  if (source.scores.size() != source.tokens.size() || source.token_types.empty()) {
    return fail(ErrorCode::malformed_file, "tokenizer.ggml.scores and token_type: expected " +
                                               std::to_string(source.tokens.size()) + " values each, found " +
                                               std::to_string(source.scores.size()) + " and " +
                                               std::to_string(source.token_types.size()));
  }
  std::vector<bool> mergeable;
  bool has_bytes = false;
  for (const std::int32_t type : source.token_types) {
    mergeable.push_back(type == kNormal);
    has_bytes = has_bytes || type == kByte;
  }
  parts.merges = scored_merges(*parts.vocabulary, source.scores, mergeable);
  parts.options = {.unknown = source.unknown_token_id, .fuse_unknown = true, .byte_fallback = has_bytes};
  const std::string space = "\u2581";
  if (source.add_space_prefix) {
    parts.normalizers.push_back(prepend_normalizer(space));
  }
  parts.normalizers.push_back(replace_normalizer(TextPattern(std::string(" ")), space));
  parts.decoder = {ReplaceDecoder{.pattern = TextPattern(space), .content = " "}, ByteFallbackDecoder{}, FuseDecoder{}};
  if (source.add_space_prefix) {
    parts.decoder.emplace_back(StripDecoder{.content = " ", .start = 1, .stop = 0});
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_tokenizer(GgufVocabulary vocabulary) {
  if (Result<void> checked = check(vocabulary); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  const bool byte_level = vocabulary.model == "gpt2";
  if (!byte_level && vocabulary.model != "llama") {
    return fail(ErrorCode::unsupported, "tokenizer.ggml.model: " + in_quotes(vocabulary.model) +
                                            " is not supported; supported are gpt2 and llama");
  }
  auto tokens = make_vocabulary(vocabulary.tokens);
  if (!tokens) {
    return tl::unexpected(std::move(tokens.error()));
  }
  BpeTokenizerParts parts;
  parts.vocabulary = std::move(*tokens);
  parts.added_tokens = added_tokens(vocabulary, *parts.vocabulary);
  parts.bos_token_id = vocabulary.bos_token_id;
  parts.eos_token_id = vocabulary.eos_token_id;
  if (vocabulary.add_bos_token && vocabulary.bos_token_id) {
    parts.prefix.push_back(*vocabulary.bos_token_id);
  }
  if (vocabulary.add_eos_token && vocabulary.eos_token_id) {
    parts.suffix.push_back(*vocabulary.eos_token_id);
  }
  Result<void> filled = byte_level ? fill_byte_level(vocabulary, parts) : fill_sentence_piece(vocabulary, parts);
  if (!filled) {
    return tl::unexpected(std::move(filled.error()));
  }
  return BpeTokenizer::make(std::move(parts));
}

}  // namespace troupe

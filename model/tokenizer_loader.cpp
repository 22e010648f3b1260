#include "model/tokenizer_loader.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/bpe_tokenizer.hpp"
#include "model/error_text.hpp"
#include "model/json_file.hpp"
#include "model/json_node.hpp"
#include "model/tokenizer_components.hpp"
#include "model/tokenizer_json.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

/// The largest tokenizer.json in use is about 40 MB.
constexpr std::size_t kMaxTokenizerBytes = std::size_t{256} << 20U;

std::size_t longest_token(const Vocabulary& vocabulary) {
  std::size_t longest = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (const std::string* token = vocabulary.token(id)) {
      const auto is_start = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; };
      longest = std::max(longest, static_cast<std::size_t>(std::ranges::count_if(*token, is_start)));
    }
  }
  return longest;
}

std::vector<AddedToken> read_added_tokens(const JsonNode& node) {
  std::vector<AddedToken> tokens;
  if (node.is_null()) {
    return tokens;
  }
  for (const JsonNode& element : node.elements()) {
    const std::int64_t id = element["id"].integer();
    if (id < 0 || id >= Vocabulary::kMaxTokens) {
      element["id"].refuse(
          ErrorCode::malformed_file,
          "expected an id in [0, " + std::to_string(Vocabulary::kMaxTokens) + "), found " + std::to_string(id));
      continue;
    }
    tokens.push_back({.id = static_cast<TokenId>(id),
                      .content = element["content"].string(),
                      .single_word = element["single_word"].boolean_or(false),
                      .lstrip = element["lstrip"].boolean_or(false),
                      .rstrip = element["rstrip"].boolean_or(false),
                      .normalized = element["normalized"].boolean_or(true),
                      .special = element["special"].boolean_or(false)});
  }
  return tokens;
}

BpeOptions read_bpe_options(const JsonNode& model, const Vocabulary& vocabulary) {
  BpeOptions options{.unknown = std::nullopt,
                     .fuse_unknown = model["fuse_unk"].boolean_or(false),
                     .byte_fallback = model["byte_fallback"].boolean_or(false),
                     .ignore_merges = model["ignore_merges"].boolean_or(false)};
  if (const JsonNode unknown = model["unk_token"]; !unknown.is_null()) {
    options.unknown = vocabulary.find(unknown.string());
    if (!options.unknown) {
      unknown.refuse(ErrorCode::malformed_file, in_quotes(unknown.string()) + " is not in the vocabulary");
    }
  }
  for (const std::string_view field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[field].string_or("").empty()) {
      model[field].refuse(ErrorCode::unsupported, "only an empty one is supported");
    }
  }
  if (const JsonNode dropout = model["dropout"]; !dropout.is_null() && dropout.number() != 0.0) {
    dropout.refuse(ErrorCode::unsupported, "only 0 is supported");
  }
  return options;
}

/// Everything of a tokenizer.json; what is wrong with it is in `problem`.
BpeTokenizerParts read_parts(TokenizerJson document, JsonProblem& problem) {
  BpeTokenizerParts parts;
  const JsonNode root(document.rest, "", problem);
  const JsonNode model = root["model"];
  // Old files leave the type of a BPE model out.
  if (const std::string type = model["type"].string_or("BPE"); type != "BPE") {
    model["type"].refuse(ErrorCode::unsupported,
                         "tokenizer model " + in_quotes(type) + " is not supported, only BPE is");
    return parts;
  }
  auto vocabulary = std::make_shared<const Vocabulary>(std::move(document.vocabulary));
  if (vocabulary->size() == 0) {
    model["vocab"].refuse(ErrorCode::malformed_file, "expected an object of tokens and their ids");
  }
  if (!model["merges"].is_array()) {
    model["merges"].refuse(ErrorCode::malformed_file, "expected an array of merges");
  }
  auto merges = ranked_merges(*vocabulary, document.merges);
  if (!merges) {
    model["merges"].refuse(merges.error());
    return parts;
  }
  parts.merges = std::move(*merges);
  parts.options = read_bpe_options(model, *vocabulary);
  parts.added_tokens = read_added_tokens(root["added_tokens"]);
  parts.normalizers = read_normalizers(root["normalizer"]);
  parts.pre_tokenizers = read_pre_tokenizers(root["pre_tokenizer"]);
  parts.decoder = read_decoder(root["decoder"], longest_token(*vocabulary));
  const auto is_token = [&](std::int64_t id) {
    return (id >= 0 && id < vocabulary->size()) ||
           std::ranges::find(parts.added_tokens, id, &AddedToken::id) != parts.added_tokens.end();
  };
  SpecialTokensAround around = read_post_processor(root["post_processor"], is_token);
  parts.prefix = std::move(around.prefix);
  parts.suffix = std::move(around.suffix);
  parts.vocabulary = std::move(vocabulary);
  return parts;
}

/// A special token of tokenizer_config.json: a string, or an object with the string as "content". Nothing if there is
/// none, or if the tokenizer does not have it.
std::optional<TokenId> read_special_token(const JsonNode& node, const BpeTokenizerParts& parts) {
  if (node.is_null()) {
    return std::nullopt;
  }
  const std::string content = node.is_string() ? node.string() : node["content"].string();
  const auto added = std::ranges::find(parts.added_tokens, content, &AddedToken::content);
  return added != parts.added_tokens.end() ? std::optional(added->id) : parts.vocabulary->find(content);
}

Result<void> read_tokenizer_config(const std::filesystem::path& path, BpeTokenizerParts& parts) {
  if (!is_present(path)) {
    return {};
  }
  const Result<nlohmann::json> config = read_json_file(path);
  if (!config) {
    return tl::unexpected(config.error());
  }
  JsonProblem problem;
  const JsonNode root(*config, "", problem);
  parts.bos_token_id = read_special_token(root["bos_token"], parts);
  parts.eos_token_id = read_special_token(root["eos_token"], parts);
  if (problem.error) {
    return fail_in_file(path, *problem.error);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "tokenizer.json";
  const Result<std::string> text = read_text_file(path, kMaxTokenizerBytes);
  if (!text) {
    return tl::unexpected(text.error());
  }
  Result<TokenizerJson> document = parse_tokenizer_json(*text);
  if (!document) {
    return fail_in_file(path, document.error());
  }
  JsonProblem problem;
  BpeTokenizerParts parts = read_parts(std::move(*document), problem);
  if (problem.error) {
    return fail_in_file(path, *problem.error);
  }
  if (Result<void> read = read_tokenizer_config(directory / "tokenizer_config.json", parts); !read) {
    return tl::unexpected(std::move(read.error()));
  }
  Result<std::unique_ptr<Tokenizer>> tokenizer = BpeTokenizer::make(std::move(parts));
  if (!tokenizer) {
    return fail_in_file(path, tokenizer.error());
  }
  return tokenizer;
}

}  // namespace troupe

#include "model/tokenizer_components.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/error_text.hpp"
#include "model/utf8.hpp"

namespace troupe {
namespace {

void refuse_type(const JsonNode& node, std::string_view what) {
  const JsonNode type = node["type"];
  type.refuse(ErrorCode::unsupported, std::string(what) + " " + in_quotes(type.string()) + " is not supported");
}

/// `{"String": ...}` or `{"Regex": ...}`.
std::optional<TextPattern> read_pattern(const JsonNode& node) {
  if (const JsonNode literal = node["String"]; !literal.is_null()) {
    std::string text = literal.string();
    if (text.empty()) {
      literal.refuse(ErrorCode::malformed_file, "expected a string that is not empty");
      return std::nullopt;
    }
    return TextPattern(std::move(text));
  }
  const JsonNode source = node["Regex"];
  auto regex = Regex::compile(source.string());
  if (!regex) {
    source.refuse(regex.error());
    return std::nullopt;
  }
  return TextPattern(*std::move(regex));
}

/// A string of one code point; a space if it is not.
std::string read_character(const JsonNode& node) {
  std::string text = node.string();
  if (text.empty() || first_code_point(text).size != text.size()) {
    node.refuse(ErrorCode::malformed_file, "expected one character, found " + in_quotes(text));
    return " ";
  }
  return text;
}

SplitBehavior read_behavior(const JsonNode& node, std::string fallback) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> behaviors = {{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  }};
  const std::string name = node.string_or(std::move(fallback));
  for (const auto& [known, behavior] : behaviors) {
    if (name == known) {
      return behavior;
    }
  }
  node.refuse(ErrorCode::malformed_file, "unknown behavior " + in_quotes(name));
  return SplitBehavior::isolated;
}

PrependScheme read_prepend_scheme(const JsonNode& node) {
  const JsonNode scheme = node["prepend_scheme"];
  // Files from before there were schemes say it with a flag.
  const std::string name = scheme.string_or(node["add_prefix_space"].boolean_or(true) ? "always" : "never");
  if (name == "never") {
    return PrependScheme::never;
  }
  if (name == "first") {
    return PrependScheme::first;
  }
  if (name != "always") {
    scheme.refuse(ErrorCode::malformed_file, "unknown scheme " + in_quotes(name));
  }
  return PrependScheme::always;
}

void add_normalizers(const JsonNode& node, std::vector<Normalizer>& normalizers) {
  constexpr std::array<std::pair<std::string_view, NormalizationForm>, 4> forms = {{
      {"NFC", NormalizationForm::nfc},
      {"NFD", NormalizationForm::nfd},
      {"NFKC", NormalizationForm::nfkc},
      {"NFKD", NormalizationForm::nfkd},
  }};
  const std::string type = node["type"].string();
  for (const auto& [name, form] : forms) {
    if (type == name) {
      normalizers.push_back(unicode_normalizer(form));
      return;
    }
  }
  if (type == "Sequence") {
    for (const JsonNode& element : node["normalizers"].elements()) {
      add_normalizers(element, normalizers);
    }
  } else if (type == "Lowercase") {
    normalizers.push_back(lowercase_normalizer());
  } else if (type == "Prepend") {
    normalizers.push_back(prepend_normalizer(node["prepend"].string()));
  } else if (type == "Strip") {
    normalizers.push_back(
        strip_normalizer({.left = node["strip_left"].boolean(), .right = node["strip_right"].boolean()}));
  } else if (type == "Replace") {
    std::string content = node["content"].string();
    if (auto pattern = read_pattern(node["pattern"])) {
      normalizers.push_back(replace_normalizer(*std::move(pattern), std::move(content)));
    }
  } else {
    refuse_type(node, "normalizer");
  }
}

PreTokenizer read_byte_level(const JsonNode& node) {
  ByteLevelOptions options{.add_prefix_space = node["add_prefix_space"].boolean_or(true), .split = nullptr};
  if (node["use_regex"].boolean_or(true)) {
    auto regex = Regex::compile(kGpt2Pattern);
    if (!regex) {
      node.refuse(regex.error());
      return nullptr;
    }
    options.split = split_pre_tokenizer(TextPattern(*std::move(regex)), {});
  }
  return byte_level_pre_tokenizer(std::move(options));
}

void add_pre_tokenizers(const JsonNode& node, std::vector<PreTokenizer>& pre_tokenizers) {
  const std::string type = node["type"].string();
  if (type == "Sequence") {
    for (const JsonNode& element : node["pretokenizers"].elements()) {
      add_pre_tokenizers(element, pre_tokenizers);
    }
  } else if (type == "Split") {
    const SplitOptions options{.behavior = read_behavior(node["behavior"], ""),
                               .invert = node["invert"].boolean_or(false)};
    if (auto pattern = read_pattern(node["pattern"])) {
      pre_tokenizers.push_back(split_pre_tokenizer(*std::move(pattern), options));
    }
  } else if (type == "ByteLevel") {
    pre_tokenizers.push_back(read_byte_level(node));
  } else if (type == "Digits") {
    const bool individual = node["individual_digits"].boolean_or(false);
    pre_tokenizers.push_back(
        character_pre_tokenizer(is_numeric, individual ? SplitBehavior::isolated : SplitBehavior::contiguous));
  } else if (type == "Punctuation") {
    pre_tokenizers.push_back(character_pre_tokenizer(is_punctuation, read_behavior(node["behavior"], "Isolated")));
  } else if (type == "Metaspace") {
    pre_tokenizers.push_back(metaspace_pre_tokenizer({.replacement = read_character(node["replacement"]),
                                                      .prepend_scheme = read_prepend_scheme(node),
                                                      .split = node["split"].boolean_or(true)}));
  } else if (type == "Whitespace") {
    // The pattern is \w+|[^\w\s]+, but with the classes of Rust's regular expressions, not Oniguruma's.
    pre_tokenizers.push_back(character_pre_tokenizer(is_white_space, SplitBehavior::removed));
    pre_tokenizers.push_back(character_pre_tokenizer(is_word, SplitBehavior::contiguous));
  } else if (type == "WhitespaceSplit") {
    pre_tokenizers.push_back(character_pre_tokenizer(is_white_space, SplitBehavior::removed));
  } else {
    refuse_type(node, "pre-tokenizer");
  }
}

std::size_t read_count(const JsonNode& node, std::size_t max) {
  const std::int64_t count = node.integer();
  if (count < 0 || static_cast<std::uint64_t>(count) > max) {
    node.refuse(ErrorCode::malformed_file, "expected at most the longest token's " + std::to_string(max) +
                                               " characters, found " + std::to_string(count));
    return 0;
  }
  return static_cast<std::size_t>(count);
}

void add_decoder_steps(const JsonNode& node, std::size_t longest_token, std::vector<DecoderStep>& steps) {
  const std::string type = node["type"].string();
  if (type == "Sequence") {
    for (const JsonNode& element : node["decoders"].elements()) {
      add_decoder_steps(element, longest_token, steps);
    }
    return;
  }
  if (type == "ByteLevel") {
    steps.emplace_back(ByteLevelDecoder{});
  } else if (type == "ByteFallback") {
    steps.emplace_back(ByteFallbackDecoder{});
  } else if (type == "Fuse") {
    steps.emplace_back(FuseDecoder{});
  } else if (type == "Replace") {
    std::string content = node["content"].string();
    if (auto pattern = read_pattern(node["pattern"])) {
      steps.emplace_back(ReplaceDecoder{.pattern = *std::move(pattern), .content = std::move(content)});
    }
  } else if (type == "Strip") {
    steps.emplace_back(StripDecoder{.content = read_character(node["content"]),
                                    .start = read_count(node["start"], longest_token),
                                    .stop = read_count(node["stop"], longest_token)});
  } else if (type == "Metaspace") {
    steps.emplace_back(MetaspaceDecoder{.replacement = read_character(node["replacement"]),
                                        .drop_in_first_token = read_prepend_scheme(node) != PrependScheme::never});
  } else {
    refuse_type(node, "decoder");
  }
}

/// Reads `{"single": [{"SpecialToken": ...}, {"Sequence": ...}, ...], "special_tokens": {...}}`.
SpecialTokensAround read_template(const JsonNode& node, const std::function<bool(std::int64_t)>& is_token) {
  SpecialTokensAround around;
  const JsonNode special_tokens = node["special_tokens"];
  bool seen_text = false;
  for (const JsonNode& element : node["single"].elements()) {
    const JsonNode special = element["SpecialToken"];
    if (special.is_null()) {
      const JsonNode name = element["Sequence"]["id"];
      if (name.string() != "A" || seen_text) {
        name.refuse(ErrorCode::unsupported, "expected the sequence A once");
      }
      seen_text = true;
      continue;
    }
    const JsonNode name = special["id"];
    const JsonNode definition = special_tokens[name.string()];
    if (definition.is_null()) {
      name.refuse(ErrorCode::malformed_file, in_quotes(name.string()) + " is not among the template's special tokens");
      continue;
    }
    for (const JsonNode& id : definition["ids"].elements()) {
      const std::int64_t value = id.integer();
      if (!is_token(value)) {
        id.refuse(ErrorCode::malformed_file, "no token has id " + std::to_string(value));
        continue;
      }
      (seen_text ? around.suffix : around.prefix).push_back(static_cast<TokenId>(value));
    }
  }
  if (!seen_text) {
    node["single"].refuse(ErrorCode::malformed_file, "the template does not contain the sequence A");
  }
  return around;
}

/// A pair `["<s>", 0]`.
TokenId read_token_pair(const JsonNode& node, const std::function<bool(std::int64_t)>& is_token) {
  const auto pair = node.elements();
  if (pair.size() != 2) {
    node.refuse(ErrorCode::malformed_file, "expected a token and its id");
    return 0;
  }
  const std::int64_t id = pair[1].integer();
  if (!is_token(id)) {
    pair[1].refuse(ErrorCode::malformed_file, "no token has id " + std::to_string(id));
    return 0;
  }
  return static_cast<TokenId>(id);
}

}  // namespace

std::vector<Normalizer> read_normalizers(const JsonNode& node) {
  std::vector<Normalizer> normalizers;
  if (!node.is_null()) {
    add_normalizers(node, normalizers);
  }
  return normalizers;
}

std::vector<PreTokenizer> read_pre_tokenizers(const JsonNode& node) {
  std::vector<PreTokenizer> pre_tokenizers;
  if (!node.is_null()) {
    add_pre_tokenizers(node, pre_tokenizers);
  }
  return pre_tokenizers;
}

std::vector<DecoderStep> read_decoder(const JsonNode& node, std::size_t longest_token) {
  std::vector<DecoderStep> steps;
  if (node.is_null()) {
    steps.emplace_back(JoinDecoder{});
  } else {
    add_decoder_steps(node, longest_token, steps);
    if (const Result<void> checked = check_decoder(steps); !checked) {
      node.refuse(checked.error().code, "step " + checked.error().message);
    }
  }
  return steps;
}

SpecialTokensAround read_post_processor(const JsonNode& node, const std::function<bool(std::int64_t)>& is_token) {
  SpecialTokensAround around;
  if (node.is_null()) {
    return around;
  }
  const std::string type = node["type"].string();
  if (type == "Sequence") {
    for (const JsonNode& element : node["processors"].elements()) {
      SpecialTokensAround outer = read_post_processor(element, is_token);
      outer.prefix.insert(outer.prefix.end(), around.prefix.begin(), around.prefix.end());
      around.suffix.insert(around.suffix.end(), outer.suffix.begin(), outer.suffix.end());
      around.prefix = std::move(outer.prefix);
    }
  } else if (type == "TemplateProcessing") {
    around = read_template(node, is_token);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    around.prefix.push_back(read_token_pair(node["cls"], is_token));
    around.suffix.push_back(read_token_pair(node["sep"], is_token));
  } else if (type != "ByteLevel") {  // which concerns offsets only
    refuse_type(node, "post-processor");
  }
  return around;
}

}  // namespace troupe

#pragma once

#include <functional>
#include <vector>

#include "cache/types.hpp"
#include "model/json_node.hpp"
#include "model/normalizer.hpp"
#include "model/pre_tokenizer.hpp"
#include "model/token_decoder.hpp"

/// The parts of a tokenizer.json other than its model. Anything unknown or malformed is noted as the node's problem.
namespace troupe {

/// `/normalizer`; null means none.
[[nodiscard]] std::vector<Normalizer> read_normalizers(const JsonNode& node);

/// `/pre_tokenizer`; null means none.
[[nodiscard]] std::vector<PreTokenizer> read_pre_tokenizers(const JsonNode& node);

/// `/decoder`; null means spaces between tokens.
/// @param longest_token Code points of the vocabulary's longest token: what strips more is refused.
[[nodiscard]] std::vector<DecoderStep> read_decoder(const JsonNode& node, std::size_t longest_token);

/// What a post-processor puts around one text.
struct SpecialTokensAround {
  std::vector<TokenId> prefix;
  std::vector<TokenId> suffix;
};
/// `/post_processor`; null means nothing.
/// @param is_token Whether an id has a token.
[[nodiscard]] SpecialTokensAround read_post_processor(const JsonNode& node,
                                                      const std::function<bool(std::int64_t)>& is_token);

}  // namespace troupe

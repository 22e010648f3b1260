#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/types.hpp"

namespace troupe {

/// The tokenizer part of a GGUF file's metadata (`tokenizer.ggml.*`).
struct GgufVocabulary {
  /// "gpt2" (byte-level BPE) or "llama" (SentencePiece).
  std::string model;
  /// Name of the pre-tokenizer, e.g. "smollm"; empty if absent.
  std::string pre;
  std::vector<std::string> tokens;
  /// 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; may be empty.
  std::vector<std::int32_t> token_types;
  /// SentencePiece scores; may be empty.
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::optional<TokenId> bos_token_id;
  std::optional<TokenId> eos_token_id;
  std::optional<TokenId> unknown_token_id;
  std::optional<TokenId> padding_token_id;
  bool add_bos_token = false;
  bool add_eos_token = false;
  bool add_space_prefix = true;
};

}  // namespace troupe

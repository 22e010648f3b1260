#pragma once

#include <optional>

#include "cache/error.hpp"
#include "model/gguf_file.hpp"
#include "model/gguf_vocabulary.hpp"
#include "model/model_config.hpp"

namespace troupe {

/// The configuration that a GGUF file's metadata and tensor names describe. Architectures "llama" (Mistral's models are
/// stored as such) and "qwen2".
///
/// A llama3 scaling, which the file has only as factors of the rotary frequencies (tensor "rope_freqs.weight"), becomes
/// the parameters that llama.cpp's converter made them from; factors that no such parameters give are refused.
///
/// Tokens that end a sequence are the file's end of sequence, end of turn and end of message.
[[nodiscard]] Result<ModelConfig> read_gguf_config(const GgufFile& file);

/// The vocabulary, if the file has one.
[[nodiscard]] Result<std::optional<GgufVocabulary>> read_gguf_vocabulary(const GgufFile& file);

}  // namespace troupe

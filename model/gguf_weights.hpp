#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "cache/error.hpp"
#include "model/file_weights.hpp"
#include "model/gguf_file.hpp"
#include "model/mapped_file.hpp"
#include "model/model_config.hpp"

namespace troupe {

/// The Hugging Face name of a GGUF tensor ("blk.0.attn_q.weight" is "model.layers.0.self_attn.q_proj.weight"); the same
/// name if there is no other.
[[nodiscard]] std::string hugging_face_name(std::string_view gguf_name);

/// The tensors of a GGUF file under Hugging Face names. `parsed` was read from `file`, `config` from `parsed`.
/// Rotary rows, which llama.cpp interleaves for the architecture "llama", are marked as such.
[[nodiscard]] Result<std::shared_ptr<const FileWeights>> make_gguf_weights(const std::filesystem::path& path,
                                                                           MappedFile file, const GgufFile& parsed,
                                                                           const ModelConfig& config);

}  // namespace troupe

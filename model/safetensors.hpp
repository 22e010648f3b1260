#pragma once

#include <filesystem>
#include <memory>

#include "cache/error.hpp"
#include "model/file_weights.hpp"

namespace troupe {

/// Opens the weights of a Hugging Face directory: the shards that model.safetensors.index.json names or, if there is no
/// index, model.safetensors. A stray file beside an index is not looked at.
///
/// The index may name files in the directory and in folders below it. Symbolic links are followed wherever they lead,
/// as Hugging Face's download cache consists of them.
///
/// Errors name file, tensor, expected and found.
[[nodiscard]] Result<std::shared_ptr<const FileWeights>> open_safetensors(const std::filesystem::path& directory);

}  // namespace troupe

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/error.hpp"
#include "model/dtype.hpp"

namespace troupe {

/// A tensor that a safetensors header declares.
struct SafetensorsEntry {
  std::string name;
  /// As in the header, e.g. "BF16".
  std::string type_name;
  /// `DType::other` for types that no weight of ours has (I64, say).
  DType dtype = DType::other;
  std::vector<std::int64_t> shape;
  /// Where the data lies in the file, in bytes.
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Reads and checks the header of a whole file: its length, syntax and keys, that each tensor's type, shape and bytes
/// agree, and that the tensors fill the rest of the file without holes or overlaps, as the format demands.
/// Errors name the tensor, expected and found.
[[nodiscard]] Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::span<const std::byte> file);

}  // namespace troupe

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cache/error.hpp"
#include "model/dtype.hpp"

namespace troupe {

/// Types of metadata values, with the numbers that the file has for them.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// Elements as they lie in the file; checked to be complete.
struct GgufArray {
  GgufType type = GgufType::u8;
  std::size_t count = 0;
  std::span<const std::byte> bytes;
};

/// Integers are wide and signed; `std::uint64_t` holds what does not fit.
using GgufValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, GgufArray>;

struct GgufTensor {
  std::string name;
  DType dtype = DType::f32;
  /// Row-major, outermost dimension first: the reverse of the file's order.
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// What a GGUF file holds. Strings, arrays and tensors are views of the file.
struct GgufFile {
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::map<std::string, GgufTensor, std::less<>> tensors;
};

/// Reads a whole GGUF file, version 2 or 3, little-endian. Everything that the header says is checked: nothing is
/// allocated from a count or length before the file is known to have as much.
/// Errors name the key or tensor, expected and found: `malformed_file`, or `unsupported` for versions, tensor types and
/// nested arrays that troupe does not read.
[[nodiscard]] Result<GgufFile> parse_gguf(std::span<const std::byte> bytes);

}  // namespace troupe

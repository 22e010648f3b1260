#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace troupe {

/// Element types that a model file stores. The quantized ones are GGUF's.
enum class DType : std::uint8_t { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, other };

[[nodiscard]] std::string_view to_string(DType type) noexcept;

/// How elements lie in a file: in blocks along the innermost dimension.
struct DTypeLayout {
  std::int64_t block_elements = 1;
  std::int64_t block_bytes = 0;
};
/// `block_bytes` is 0 for `DType::other`.
[[nodiscard]] DTypeLayout layout_of(DType type) noexcept;

/// Elements of a tensor, 1 for an empty shape. Nothing if a dimension is negative or the number exceeds 2^62.
[[nodiscard]] std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept;

/// Bytes of a tensor. Nothing if its rows are not whole blocks or the number exceeds 2^62.
[[nodiscard]] std::optional<std::int64_t> byte_count(DType type, std::span<const std::int64_t> shape) noexcept;

}  // namespace troupe

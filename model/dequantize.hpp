#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/dtype.hpp"

/// From a file's elements to those that a model computes with. Sources are whole blocks, at any alignment; `out` has an
/// element for each of the source's. Every type but `DType::other` is supported.
namespace troupe {

/// Converts to float32. Quantized blocks have the layouts of GGUF and give, bit by bit, the values of gguf-py's
/// `gguf.quants.dequantize`.
void convert_to_f32(DType type, std::span<const std::byte> source, std::span<float> out) noexcept;

/// The same rounded to bfloat16 (round to nearest even).
void convert_to_bf16(DType type, std::span<const std::byte> source, std::span<std::uint16_t> out) noexcept;

}  // namespace troupe

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/error.hpp"
#include "model/dtype.hpp"

namespace troupe {

/// A tensor as it lies in a memory-mapped file; valid as long as its source lives.
struct TensorView {
  DType dtype = DType::f32;
  /// Row-major, outermost dimension first (GGUF's order is reversed on reading).
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  /// Attention heads whose rotary rows lie interleaved, as llama.cpp stores them (row 2i + s of a head is the model's
  /// row s * head_dim / 2 + i); 0 if the rows lie as in the model. Reading undoes it.
  std::int64_t interleaved_heads = 0;
};

/// The tensors of a model under Hugging Face names ("model.layers.0.self_attn.q_proj.weight"), wherever they come from.
class WeightSource {
 public:
  WeightSource() = default;
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  WeightSource(WeightSource&&) = delete;
  WeightSource& operator=(WeightSource&&) = delete;
  virtual ~WeightSource() = default;

  [[nodiscard]] virtual bool contains(std::string_view name) const = 0;
  /// Error `malformed_file` naming file and tensor if there is none.
  [[nodiscard]] virtual Result<TensorView> tensor(std::string_view name) const = 0;
  /// All names, sorted.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;

  /// Reads a whole tensor as float32, dequantized, in the layout that the Hugging Face model has (a GGUF source undoes
  /// llama.cpp's permutation of rotary rows). `expected_shape` is checked; the error names file, tensor, expected and
  /// found. `out` must have the product of the shape.
  [[nodiscard]] virtual Result<void> read_f32(std::string_view name, std::span<const std::int64_t> expected_shape,
                                              std::span<float> out) const = 0;
  /// The same rounded to bfloat16 (round to nearest even), without a float32 copy of the whole tensor.
  [[nodiscard]] virtual Result<void> read_bf16(std::string_view name, std::span<const std::int64_t> expected_shape,
                                               std::span<std::uint16_t> out) const = 0;
  /// Reads some rows (slices along the first dimension) of a matrix as float32, in the order given, for an embedding
  /// that stays in the file. `out` has one row for each of `rows`. Error: no such tensor or row.
  [[nodiscard]] virtual Result<void> read_rows_f32(std::string_view name, std::span<const std::int32_t> rows,
                                                   std::span<float> out) const = 0;
};

}  // namespace troupe

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "cache/error.hpp"
#include "model/load.hpp"
#include "model/weight_source.hpp"

namespace troupe {

/// A linear layer whose weight is packed once into oneDNN's blocked layout (`mkldnn::_reorder_linear_weight`), which
/// `mkldnn::_linear_pointwise` then multiplies without packing it again; `at::linear` would at each call. Where
/// LibTorch has no oneDNN, the plain weight and `at::linear` are used.
class PackedLinear {
 public:
  /// One of the matrices, (outputs, inputs), that are stacked to one layer.
  struct Part {
    /// Hugging Face's name without ".weight" and ".bias".
    std::string name;
    std::int64_t outputs = 0;
    bool has_bias = false;
  };

  /// Reads and packs the parts, one above the other. Throws what LibTorch throws.
  [[nodiscard]] static Result<PackedLinear> load(const WeightSource& weights, const std::vector<Part>& parts,
                                                 std::int64_t inputs, ComputeType dtype);

  /// @param x (rows, inputs) in the layer's type. Returns (rows, outputs). Throws what LibTorch throws.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;

 private:
  PackedLinear() = default;

  at::Tensor weight_;
  /// Undefined if the layer has none.
  at::Tensor bias_;
  bool packed_ = false;
};

/// An uninitialized tensor's type for a compute type.
[[nodiscard]] at::ScalarType to_scalar_type(ComputeType dtype);

/// Reads a tensor in a compute type. Throws what LibTorch throws.
[[nodiscard]] Result<void> read_tensor(const WeightSource& weights, const std::string& name, at::Tensor out);

}  // namespace troupe

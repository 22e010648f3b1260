#include "model/packed_linear.hpp"

#include <optional>
#include <utility>

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

namespace troupe {

namespace {

using Reorder = at::Tensor(const at::Tensor&, std::optional<std::int64_t>);
using Scalars = c10::List<std::optional<at::Scalar>>;
using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                   c10::string_view, Scalars, std::optional<c10::string_view>);

/// Rows that the layout is chosen for; the probes found no difference between 1 and 32.
constexpr std::int64_t kRowsHint = 32;

/// LibTorch's own operators, which its headers do not declare. Empty where LibTorch was built without oneDNN.
struct MkldnnOperators {
  std::optional<c10::TypedOperatorHandle<Reorder>> reorder;
  std::optional<c10::TypedOperatorHandle<LinearPointwise>> linear;

  MkldnnOperators() {
    const auto found_reorder = c10::Dispatcher::singleton().findSchema({"mkldnn::_reorder_linear_weight", ""});
    const auto found_linear = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (found_reorder && found_linear) {
      reorder = found_reorder->typed<Reorder>();
      linear = found_linear->typed<LinearPointwise>();
    }
  }
};

const MkldnnOperators& mkldnn_operators() {
  static const MkldnnOperators operators;
  return operators;
}

/// Nothing where oneDNN is not there, or does not serve the type on this processor (bfloat16 needs AVX-512).
std::optional<at::Tensor> pack(const at::Tensor& weight) {
  const MkldnnOperators& operators = mkldnn_operators();
  if (!operators.reorder) {
    return std::nullopt;
  }
  try {
    return operators.reorder->call(weight, kRowsHint);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

}  // namespace

at::ScalarType to_scalar_type(ComputeType dtype) {
  return dtype == ComputeType::f32 ? at::ScalarType::Float : at::ScalarType::BFloat16;
}

Result<void> read_tensor(const WeightSource& weights, const std::string& name, at::Tensor out) {
  const auto count = static_cast<std::size_t>(out.numel());
  if (out.scalar_type() == at::ScalarType::Float) {
    return weights.read_f32(name, out.sizes().vec(), std::span(out.data_ptr<float>(), count));
  }
  // c10::BFloat16 holds exactly its 16 bits.
  auto* const bits = reinterpret_cast<std::uint16_t*>(out.data_ptr<at::BFloat16>());
  return weights.read_bf16(name, out.sizes().vec(), std::span(bits, count));
}

Result<PackedLinear> PackedLinear::load(const WeightSource& weights, const std::vector<Part>& parts,
                                        std::int64_t inputs, ComputeType dtype) {
  std::int64_t outputs = 0;
  bool has_bias = false;
  for (const Part& part : parts) {
    outputs += part.outputs;
    has_bias = has_bias || part.has_bias;
  }
  const at::ScalarType type = to_scalar_type(dtype);
  PackedLinear layer;
  at::Tensor weight = at::empty({outputs, inputs}, type);
  if (has_bias) {
    layer.bias_ = at::zeros({outputs}, type);
  }
  std::int64_t row = 0;
  for (const Part& part : parts) {
    if (Result<void> read = read_tensor(weights, part.name + ".weight", weight.narrow(0, row, part.outputs)); !read) {
      return tl::unexpected(std::move(read.error()));
    }
    if (part.has_bias) {
      if (Result<void> read = read_tensor(weights, part.name + ".bias", layer.bias_.narrow(0, row, part.outputs));
          !read) {
        return tl::unexpected(std::move(read.error()));
      }
    }
    row += part.outputs;
  }
  std::optional<at::Tensor> packed = pack(weight);
  layer.packed_ = packed.has_value();
  layer.weight_ = packed ? std::move(*packed) : std::move(weight);
  return layer;
}

at::Tensor PackedLinear::operator()(const at::Tensor& x) const {
  if (!packed_) {
    return at::linear(x, weight_, bias_.defined() ? std::optional(bias_) : std::nullopt);
  }
  return mkldnn_operators().linear->call(x, weight_, bias_.defined() ? std::optional(bias_) : std::nullopt, "none",
                                         Scalars(), "");
}

}  // namespace troupe

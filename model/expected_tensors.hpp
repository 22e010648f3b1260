#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_config.hpp"

namespace troupe {

struct ExpectedTensor {
  /// Hugging Face's name.
  std::string name;
  /// Row-major; a linear layer's is [outputs, inputs].
  std::vector<std::int64_t> shape;
};

/// Every tensor that a decoder of this configuration is made of. `lm_head.weight` is among them unless the head is
/// tied.
[[nodiscard]] std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

}  // namespace troupe

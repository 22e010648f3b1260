#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/error.hpp"
#include "model/model_config.hpp"

namespace troupe {

/// Rotary position embedding (Su et al., "RoFormer", 2021) with the scalings of transformers' modeling_rope_utils.
class RotaryEmbedding {
 public:
  /// Error `unsupported` or `malformed_file` naming the field that a scaling cannot work with.
  ///
  /// `dynamic` depends on a sequence's momentary length only beyond `max_position_embeddings`; up to there, which is as
  /// far as a sequence may grow (`ModelDescription::max_position_embeddings`), it equals no scaling, and so it is
  /// served.
  [[nodiscard]] static Result<RotaryEmbedding> make(const RopeConfig& config, std::int32_t head_dim);

  /// Writes cosines and sines of every position, each (positions, head_dim / 2), times the attention factor.
  void fill(std::span<const std::int32_t> positions, std::span<float> cosines, std::span<float> sines) const;

  /// Radians per position, head_dim / 2 values.
  [[nodiscard]] std::span<const float> inverse_frequencies() const noexcept { return inverse_frequencies_; }
  [[nodiscard]] float attention_factor() const noexcept { return attention_factor_; }

 private:
  RotaryEmbedding() = default;

  std::vector<float> inverse_frequencies_;
  float attention_factor_ = 1.0F;
};

}  // namespace troupe

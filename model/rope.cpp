#include "model/rope.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>

namespace troupe {

namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

/// transformers' `_compute_llama3_parameters`: low frequencies are divided by the factor, high ones kept, and those
/// between blended.
void scale_llama3(const RopeConfig& config, std::vector<double>& frequencies) {
  const double original_length = config.original_max_position_embeddings;
  for (double& frequency : frequencies) {
    const double rotations = original_length * frequency / kTwoPi;
    const double blend = (rotations - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor);
    const double kept = std::clamp(blend, 0.0, 1.0);
    frequency = (1.0 - kept) * frequency / config.factor + kept * frequency;
  }
}

/// Index of the frequency that makes so many rotations over the original length.
double yarn_correction_index(const RopeConfig& config, double rotations, double head_dim) {
  return head_dim * std::log(config.original_max_position_embeddings / (rotations * kTwoPi)) /
         (2.0 * std::log(config.theta));
}

/// transformers' `_compute_yarn_parameters` (Peng et al., "YaRN", 2023).
void scale_yarn(const RopeConfig& config, std::vector<double>& frequencies) {
  const auto head_dim = static_cast<double>(2 * frequencies.size());
  double low = yarn_correction_index(config, config.beta_fast, head_dim);
  double high = yarn_correction_index(config, config.beta_slow, head_dim);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1.0);
  if (low == high) {
    high += 0.001;  // as in transformers, against a division by zero
  }
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double interpolated = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] *= interpolated / config.factor + (1.0 - interpolated);
  }
}

double yarn_attention_factor(const RopeConfig& config) {
  if (config.attention_factor) {
    return *config.attention_factor;
  }
  const auto magnitude = [&config](double scale) {
    return config.factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(config.factor) + 1.0;
  };
  const double mscale = config.mscale.value_or(0.0);
  const double mscale_all_dim = config.mscale_all_dim.value_or(0.0);
  return mscale != 0.0 && mscale_all_dim != 0.0 ? magnitude(mscale) / magnitude(mscale_all_dim) : magnitude(1.0);
}

/// Returns a message about the first field that would make a frequency meaningless, or nothing.
std::string find_bad_field(const RopeConfig& config, std::int32_t head_dim) {
  if (head_dim <= 0 || head_dim % 2 != 0) {
    return "head_dim: expected an even positive number, found " + std::to_string(head_dim);
  }
  if (!(config.theta > 1.0)) {
    return "rope_theta: expected more than 1, found " + std::to_string(config.theta);
  }
  if (config.scaling == RopeScalingType::none || config.scaling == RopeScalingType::dynamic) {
    return {};
  }
  if (!(config.factor > 0.0)) {
    return "rope factor: expected a positive number, found " + std::to_string(config.factor);
  }
  if (config.scaling != RopeScalingType::linear && config.original_max_position_embeddings <= 0) {
    return "rope original_max_position_embeddings: expected a positive number, found " +
           std::to_string(config.original_max_position_embeddings);
  }
  if (config.scaling == RopeScalingType::llama3 && !(config.high_freq_factor > config.low_freq_factor)) {
    return "rope high_freq_factor: expected more than low_freq_factor (" + std::to_string(config.low_freq_factor) +
           "), found " + std::to_string(config.high_freq_factor);
  }
  if (config.scaling == RopeScalingType::yarn && !(config.beta_fast > 0.0 && config.beta_slow > 0.0)) {
    return "rope beta_fast and beta_slow: expected positive numbers, found " + std::to_string(config.beta_fast) +
           " and " + std::to_string(config.beta_slow);
  }
  return {};
}

}  // namespace

Result<RotaryEmbedding> RotaryEmbedding::make(const RopeConfig& config, std::int32_t head_dim) {
  if (std::string problem = find_bad_field(config, head_dim); !problem.empty()) {
    return fail(ErrorCode::malformed_file, std::move(problem));
  }
  std::vector<double> frequencies(static_cast<std::size_t>(head_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(config.theta, -2.0 * static_cast<double>(i) / head_dim);
  }
  RotaryEmbedding rope;
  switch (config.scaling) {
    case RopeScalingType::none:
    case RopeScalingType::dynamic:
      break;
    case RopeScalingType::linear:
      for (double& frequency : frequencies) {
        frequency /= config.factor;
      }
      break;
    case RopeScalingType::llama3:
      scale_llama3(config, frequencies);
      break;
    case RopeScalingType::yarn:
      scale_yarn(config, frequencies);
      rope.attention_factor_ = static_cast<float>(yarn_attention_factor(config));
      break;
  }
  rope.inverse_frequencies_.assign(frequencies.begin(), frequencies.end());
  return rope;
}

void RotaryEmbedding::fill(std::span<const std::int32_t> positions, std::span<float> cosines,
                           std::span<float> sines) const {
  std::size_t out = 0;
  for (const std::int32_t position : positions) {
    for (const float frequency : inverse_frequencies_) {
      // The product is rounded to float32 before the cosine, as transformers does.
      const float angle = static_cast<float>(position) * frequency;
      cosines[out] = std::cos(angle) * attention_factor_;
      sines[out] = std::sin(angle) * attention_factor_;
      ++out;
    }
  }
}

}  // namespace troupe
